"""The figures and tables of the standard tests, for one drive or several on the same scales.

Adding a method is adding a file with a ``METHOD``; a plan names it in its ``figures``.
"""

from __future__ import annotations

from testdrive.methods.page import has_method, write_method_page

__all__ = ["has_method", "write_method_page"]
