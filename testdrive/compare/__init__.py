"""Several recordings of one workload side by side: which drive handles it."""

from testdrive.compare.comparison import COMPARISON_NAME, comparison_rows, write_comparison

__all__ = ["COMPARISON_NAME", "comparison_rows", "write_comparison"]
