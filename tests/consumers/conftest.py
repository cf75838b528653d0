"""A consumer that does what the first word of a module's text says, in a child process of its own."""

import os

import pytest

from hlo_lower.consumers import Consumer

DRIVER = """
import os, signal, subprocess, sys, time
import numpy as np
from hlo_lower.consumers.consumer_outcome import RefusedError, ToolCrashedError

poisoned = []

def load():
    print("loaded")  # what a consumer prints is no answer

def compile_module(text):
    word, *rest = text.split()
    if word == "refuse":
        raise RefusedError("cannot take it", "stablehlo.sort")
    if word == "tool":
        raise ToolCrashedError("its compiler ended by SIGSEGV")
    if word == "raise":
        raise ZeroDivisionError("of its own")
    if word == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "exit":
        print("sorry", file=sys.stderr)
        sys.stderr.flush()
        os._exit(7)
    if word == "hang":
        child = subprocess.Popen(["sleep", "600"])
        with open(rest[0], "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    if word == "memory":
        np.ones(int(rest[0]) << 17)
    if word == "poison":
        poisoned.append(1)
    elif poisoned:
        os.kill(os.getpid(), signal.SIGABRT)
    return None if word == "convert" else lambda arguments: run(word, arguments)

def run(word, arguments):
    if word == "crash_at_run":
        os.kill(os.getpid(), signal.SIGABRT)
    if word == "refuse_at_run":
        raise RefusedError("not with these arguments")
    if word == "wrong":
        return [a * 2 + 1 for a in arguments]
    if word == "wrong_later":
        return [a * 2 if a.flat[0] == 1 else a for a in arguments]
    if word in ("logits", "no_logits"):
        return [np.append(a * (2 if word == "logits" else 0), np.float32(-1e30)) for a in arguments]
    if word == "few":
        return []
    return [a * 2 for a in arguments]
"""


@pytest.fixture
def fake(tmp_path):
    """A function that makes the consumer, with other fields than its own where they are given."""
    (tmp_path / "fake_driver.py").write_text(DRIVER)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))

    def made(**fields):
        told = {"title": "Fake", "driver": "fake_driver", "environment": {"PYTHONPATH": path}, "extra": "fake"}
        return Consumer("fake", **{**told, **fields})

    return made
