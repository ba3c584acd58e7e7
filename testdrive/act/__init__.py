"""The Aerospike Certification Tool's storage workload: its load, its verdict, its configuration and its log.

Reproduced after act_storage 6.x from its published behaviour; docs/methods/act.md says what is the same and
what is not.
"""
