"""The README keeps its promises."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs():
    """The Python example of the README, in two parts, runs as it stands and prints what the text says."""
    parts = re.findall(r"<!-- example.*?-->\n```python\n(.*?)```", README, re.DOTALL)
    assert len(parts) == 2
    done = subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Tile -> guarded_dynamic_update_slice",
        "128.0",
        "guarded_dynamic_update_slice",
    ]


def test_the_rules_table_is_the_registry():
    """The table of classes and canonical forms is what `hlo-lower rules --format markdown` prints."""
    command = [sys.executable, "-m", "hlo_lower", "rules", "--format", "markdown"]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout.strip()
    table = re.search(r"<!-- rules.*?-->\n(.*?)\n<!-- /rules -->", README, re.DOTALL)
    assert table is not None
    assert table[1].strip() == printed
