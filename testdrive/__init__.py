"""Replay real workloads on drives, record every I/O, and show drives side by side."""

__version__ = "0.1.0"
