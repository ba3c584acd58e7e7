"""Measures testdrive itself, with fio beside it: `python -m benchmarks`, or `make bench`.

What is asked, what was measured and how to read it: docs/benchmarks.md. Each question is a file: `iops`,
`timed_replay`, `recorded_bytes`, `inspecting`; the others are what they share.

This process imports the standard library only. The kernel counts a parent's memory at the start of a child
as the child's own peak, so that a large parent would hide what small children need.
"""
