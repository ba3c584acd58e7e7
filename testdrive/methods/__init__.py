"""The figures and tables of the standard tests, for one drive or several on the same scales.

Adding a method is adding a file with a ``METHOD``; a plan names it in its ``figures``. `looking` has the
tables, `page` the page with its figures.
"""
