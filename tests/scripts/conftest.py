"""Scripts run as a person runs them: a process of its own, in a folder of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from decode_module import SCATTER

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(tmp_path):
    """Run a script beside decode.mlir, which holds one scatter."""
    (tmp_path / "decode.mlir").write_text(SCATTER)

    def run(name, *argv):
        command = [sys.executable, str(SCRIPTS / name), *argv]
        env = {**os.environ, "COLUMNS": "160"}
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run
