"""Holds the modelled drive to known answers: `python -m validation`, or `make validate-model`.

What is modelled, and what came out: docs/modelled-drive.md. Each curve is a file, which says what is run,
where the expected values are from and what is allowed; the others are what they share. Everything is
measured as on a real drive: from the I/Os of a recording, and from what the drive counted and logged of
itself.
"""
