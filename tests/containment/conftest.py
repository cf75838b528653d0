"""A supervised program as a process of its own, without JAX."""

import subprocess
import sys

import pytest

HEAD = """\
import os, resource, signal, sys, time
from hlo_lower.base.contained import status_board, supervisor
from hlo_lower.base.contained.status_board import lowering, reading, temporary_file
from hlo_lower.base.contained.supervisor import supervised
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
def tell(message):
    print(message, file=sys.stderr)
def run():
"""
TAIL = """
sys.exit(supervised(run, ["m.mlir"], tell))
"""


@pytest.fixture
def start(tmp_path):
    """Start a program whose command has this body; what stands before `def run` may be given, too."""
    started = []

    def program(body, before=""):
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        # Whoever runs the tests in the background may have them ignore SIGINT, and so would this program.
        before = f"import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n{before}"
        code = HEAD.replace("def tell", f"{before}\ndef tell") + lines + TAIL
        process = subprocess.Popen(
            [sys.executable, "-c", code], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        started.append(process)
        return process

    yield program
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def outcome(start):
    """Run such a program to its end: exit code, standard output, standard error."""

    def run(body, before=""):
        process = start(body, before)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return run
