"""One recording as a page that people can read, with its figures as PNG and CSV files beside it."""

from testdrive.report.single import REPORT_NAME, write_report

__all__ = ["REPORT_NAME", "write_report"]
