"""What other folders of tests have of wrong lowerings is found here, too."""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "wrong_on_purpose"), str(TESTS / "lowerings")]
