"""Children that judge: what they cannot do is an error, and none outlives a parent that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from time import monotonic, process_time, sleep

import numpy as np
import pytest
from untyped_mlir import module

import hlo_lower
from hlo_lower.base.child import AnsweringChild, Stopwatch
from hlo_lower.verify.judges.interpreter import Interpreter, InterpreterError

ADD = module("%a: 2xi32", "%r = add %a, %a")
CUSTOM = module("%a: 2xi32", "%r = custom_call @nobody_knows(%a) -> 2xi32")


def doubles(interpreter: Interpreter) -> bool:
    """Whether it answers rightly."""
    [result] = interpreter.run(ADD, [np.asarray([1, 2], np.int32)])
    return result.tolist() == [2, 4]


def test_one_child_serves_all_and_is_replaced_when_it_dies():
    """What it cannot run is an error and the next module runs; a dead child has a successor, ended with the context."""
    with Interpreter() as interpreter:
        assert doubles(interpreter)
        first = interpreter._child
        assert doubles(interpreter)
        assert interpreter._child is first
        for text in (CUSTOM, "func.func @main("):
            with pytest.raises(InterpreterError):
                interpreter.run(text, [np.asarray([1, 2], np.int32)])
            assert doubles(interpreter)
        dead = interpreter._child
        dead.kill()
        dead.wait()
        with pytest.raises(InterpreterError, match="died"):
            doubles(interpreter)
        assert doubles(interpreter)
        last = interpreter._child
    assert last.poll() is not None
    interpreter.close()


def test_a_slow_module_is_given_up(monkeypatch):
    """A module that takes longer than the limit is an error, and the child is ended."""
    monkeypatch.setattr(sys.modules[Interpreter.__module__], "TIME_LIMIT", 0.01)
    with Interpreter() as child:
        with pytest.raises(InterpreterError, match="no answer"):
            doubles(child)
        assert child._child is None


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
for what, limit in (("sleeps", inf), ("holds", 0.6)):
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


WORKER = """
from time import process_time, sleep
def work(seconds):
    until = process_time() + seconds
    while process_time() < until:
        pass
answering.answer_all(lambda request: {"works": work, "sleeps": sleep}[request[0]](request[1]))
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A child that works or sleeps for so many seconds."""
    (tmp_path / "worker_child.py").write_text(LOADED + WORKER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    with AnsweringChild("worker_child") as child:
        child.ask(("works", 0.0))
        yield child


def test_a_limit_is_of_a_processor_where_others_use_it(worker):
    """A child that is kept from working may take longer; one that works too long, or sleeps, is ended."""
    pid, start = worker._child.pid, monotonic()
    for seconds, told in ((0.2, signal.SIGSTOP), (1.2, signal.SIGCONT)):
        Timer(seconds, os.kill, (pid, told)).start()
    assert worker.ask(("works", 0.5), 0.8) is None
    assert monotonic() - start > 1.2
    for what in ("works", "sleeps"):
        start = monotonic()
        with pytest.raises(TimeoutError):
            worker.ask((what, 60), 0.3)
        assert monotonic() - start < 0.3 * 8 + 4
        worker.ask(("works", 0.0))


def test_the_clock_ends_what_may_work_longer(worker):
    """A child that works, or sleeps, is ended when the clock says so, whatever it may use of a processor."""
    for what in ("works", "sleeps"):
        start = monotonic()
        with pytest.raises(TimeoutError):
            worker.ask((what, 60), 60, 0.3)
        assert monotonic() - start < 20
        worker.ask(("works", 0.0))


def test_what_is_counted_is_work(worker):
    """That of this process and of children that it waits for; not that nobody works."""
    watch, before = Stopwatch(), process_time()
    sleep(0.3)
    worker.ask(("sleeps", 0.3))
    assert watch.seconds < 0.2
    worker.ask(("works", 0.3))
    assert 0.3 <= watch.seconds < 0.6 + process_time() - before


def is_alive(pid):
    """Whether a process runs: one that has ended and is not reaped does not."""
    try:
        os.kill(pid, 0)
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except ProcessLookupError:
        return False
    return not state.stdout.startswith("Z") and bool(state.stdout.strip())
