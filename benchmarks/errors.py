"""Why benchmarks could not run."""


class BenchmarkError(Exception):
    """What failed, the value, and what to do now, in one message."""
