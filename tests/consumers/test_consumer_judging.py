"""What became of a module, told by a consumer that ends in every way there is."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hlo_lower.consumers.consumer_judge import Judge, judge
from hlo_lower.consumers.consumer_outcome import ConsumerRun
from hlo_lower.consumers.rounding import Rounding

EXACT = Rounding((True,))
ONE = np.ones(3, np.float32)
RUN = ConsumerRun([ONE], [2 * ONE], "in range")


def judged(consumer, text, **limits):
    """The outcome of one module in one run."""
    with Judge(consumer, **limits) as one:
        return one.judge(text, [RUN], EXACT)


def is_alive(process):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(processes, seconds=10):
    """Whether processes end within that time."""
    until = time.monotonic() + seconds
    while any(map(is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, processes))


ENDINGS = [
    ("double", "right", "", "", "run"),
    ("convert", "crashed", "it gave the results of 0 of 1 runs", "", "run"),
    ("wrong", "wrong", "run 1 (in range): result 0 at [0]: expected 2.0, got 3.0 (3 elements differ", "", "run"),
    ("few", "wrong", "run 1 (in range): result 0 at []: expected 1 results, got 0 results", "", "run"),
    ("refuse", "refused", "cannot take it", "stablehlo.sort", "compile"),
    ("refuse_at_run", "refused", "not with these arguments", "", "run"),
    ("raise", "refused", "ZeroDivisionError: of its own", "", "compile"),
    ("tool", "crashed", "its compiler ended by SIGSEGV", "", "compile"),
    ("segfault", "crashed", "ended by SIGSEGV", "", "compile"),
    ("crash_at_run", "crashed", "ended by SIGABRT", "", "run"),
    ("exit", "crashed", "ended, exit code 7: sorry", "", "compile"),
]


@pytest.mark.few(8)
@pytest.mark.parametrize(("text", "result", "message", "cause", "stage"), ENDINGS, ids=[e[0] for e in ENDINGS])
def test_each_ending_is_an_outcome(fake, text, result, message, cause, stage):
    """Whatever a consumer does to its process is told, with where it happened and what it said."""
    outcome = judged(fake(), text)
    assert (outcome.result, outcome.cause, outcome.stage) == (result, cause, stage)
    assert outcome.message.startswith(message)
    assert outcome.ok == (result == "right")


def test_what_is_not_compared_is_not_said_to_be_right(fake):
    """Where a consumer does not run here, taking the module is all there is to say; without expected results it ran."""
    outcome = judged(fake(runs=False), "convert")
    assert (outcome.result, outcome.ok, outcome.runs) == ("converted", True, 0)
    outcome = judge(fake(), "double", [ONE], None, rounding=EXACT)
    assert (outcome.result, outcome.ok) == ("ran", True)


def test_runs_are_counted_up_to_the_wrong_one(fake):
    """The runs before the one that is wrong are known to be right."""
    with Judge(fake()) as one:
        outcome = one.judge("wrong_later", [RUN, ConsumerRun([3 * ONE], [6 * ONE], "mixed")], EXACT)
    assert (outcome.result, outcome.runs) == ("wrong", 1)
    assert outcome.message.startswith("run 2 (mixed): ")


def test_one_that_hangs_is_ended_with_what_it_started(fake, tmp_path):
    """The time is up after the limit, and neither the process nor its children stay."""
    start = time.monotonic()
    outcome = judged(fake(), f"hang {tmp_path / 'pids'}", limit=1)
    assert (outcome.result, outcome.message) == ("timed out", "not done within 1 s")
    assert time.monotonic() - start < 30
    assert gone([int(p) for p in (tmp_path / "pids").read_text().split()])


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_memory_is_limited(fake):
    """Asking for more than is given is a crash of that module; less than it is fine."""
    outcome = judged(fake(), "memory 2048", memory=1 << 30)
    assert (outcome.result, outcome.message) == ("crashed", "it needs more memory than it is given")
    assert judged(fake(), "memory 64", memory=1 << 30).ok


def test_several_modules_share_a_process(fake):
    """A consumer that is slow to start keeps its process, for as many modules as it may."""
    with Judge(fake(modules_per_process=2)) as one:
        processes = []
        for _ in range(3):
            assert one.judge("double", [RUN], EXACT).ok
            processes.append(one._child._process.pid)
    assert processes[0] == processes[1] != processes[2]


def test_a_crash_is_pinned_to_the_module(fake):
    """A module that dies of what another did in the same process is taken alone, and its outcome is its own."""
    with Judge(fake(modules_per_process=10)) as one:
        assert one.judge("poison", [RUN], EXACT).ok
        after = one.judge("double", [RUN], EXACT)
        told = "after other modules in the same process: crashed, ended by SIGABRT"
        assert (after.result, after.note) == ("right", told)
        assert one.judge("double", [RUN], EXACT).note == ""
        assert one.judge("segfault", [RUN], EXACT).result == "crashed"
        assert one.judge("double", [RUN], EXACT).ok


def test_one_that_cannot_start_says_why(fake):
    """What is not installed is named with its extra and not started; a failing import is a crash, with its error."""
    outcome = judged(fake(imports=("surely.not_there",)), "double")
    assert outcome.result == "not installed"
    assert outcome.message == "Fake is not installed: pip install 'hlo-lower[fake]'"
    outcome = judged(fake(driver="no_such_driver"), "double")
    assert outcome.result == "crashed"
    assert "ModuleNotFoundError: No module named 'no_such_driver'" in outcome.message


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at processes where Linux shows them")
def test_the_child_ends_with_its_parent(fake, tmp_path):
    """Killing the process that asked ends the consumer, too, though it hangs."""
    consumer = fake()
    program = f"""
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.consumers import Consumer
consumer = Consumer("fake", "Fake", "fake_driver", environment={dict(consumer.environment)!r})
Judge(consumer).judge("hang {tmp_path / "pids"}", (), Rounding(()))
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    until = time.monotonic() + 60
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone([int(p) for p in (tmp_path / "pids").read_text().split()])
