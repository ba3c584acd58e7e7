"""How many times a recorded workload a drive takes: its intervals, and the verdict of a trial."""
