"""`python -m hlo_lower`: the same program as `hlo-lower`."""

import sys

from hlo_lower.cli import main

if __name__ == "__main__":
    sys.exit(main())
