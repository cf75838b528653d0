"""Children of a judge that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import hlo_lower

LOADED = f"""import importlib.util, sys
spec = importlib.util.spec_from_file_location("answering", {str(Path(hlo_lower.__file__).parent)!r}
                                              + "/base/child.py")
answering = importlib.util.module_from_spec(spec)
spec.loader.exec_module(answering)
"""
CHILD = """
import re, time
endless = {"sleeps": lambda: time.sleep(600), "holds": lambda: re.match("(a+)+$", "a" * 60 + "b")}
answering.answer_all(lambda what: (True, endless[what]()))
"""
PARENT = """
from math import inf
from threading import Thread
for what, limit in (("sleeps", inf), ("holds", 1.0)):
    child = answering.AnsweringChild("endless_child")
    print(child._start().pid, flush=True)
    Thread(target=child.ask, args=(what, limit)).start()
"""


def test_a_child_ends_with_a_parent_that_is_killed(tmp_path):
    """Whether what it runs leaves Python's lock to others, or holds it for ever."""
    (tmp_path / "endless_child.py").write_text(LOADED + CHILD)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", LOADED + PARENT], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    children = [int(parent.stdout.readline()) for _ in range(2)]
    sleep(0.5)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    end = monotonic() + 20
    while any(map(is_alive, children)) and monotonic() < end:
        sleep(0.1)
    assert not any(map(is_alive, children))


def is_alive(pid):
    """Whether a process runs: one that has ended and is not reaped does not."""
    try:
        os.kill(pid, 0)
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except ProcessLookupError:
        return False
    return not state.stdout.startswith("Z") and bool(state.stdout.strip())
