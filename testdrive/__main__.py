"""``python -m testdrive``: the command line where the scripts directory is not on the path."""

import sys

from testdrive.cli import main

sys.exit(main())
