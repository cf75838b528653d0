"""What became of a module, told by a consumer that ends in every way there is, and compared with XLA by `verify_on`."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK, InputError
from hlo_lower.consumers import CONSUMERS, IREE, Consumer, consumer_named
from hlo_lower.consumers.consumer_judge import Judge, judge
from hlo_lower.consumers.consumer_outcome import ConsumerRun
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.consumers.verification import SILENT, verify_on

DRIVER = """
import os, signal, subprocess, sys, time
import numpy as np
from hlo_lower.consumers.consumer_outcome import RefusedError, ToolCrashedError

poisoned = []
ERRORS = {
    "refuse": RefusedError("cannot take it", "stablehlo.sort"),
    "refuse_at_run": RefusedError("not with these arguments"),
    "tool": ToolCrashedError("its compiler ended by SIGSEGV"),
    "raise": ZeroDivisionError("of its own"),
}
MADE = {
    "wrong": lambda a: a * 2 + 1,
    "unwritten": lambda a: a * 2 + np.empty(1 << 20, np.uint8)[9],
    "wrong_later": lambda a: a * 2 if a.flat[0] == 1 else a,
    "logits": lambda a: np.append(a * 2, np.float32(-1e30)),
    "no_logits": lambda a: np.append(a * 0, np.float32(-1e30)),
}

def load():
    print("loaded")  # what a consumer prints is no answer

def compile_module(text):
    word, *rest = text.split()
    if word in ERRORS and word != "refuse_at_run":
        raise ERRORS[word]
    if word == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if word == "exit":
        os.write(2, b"sorry\\n")
        os._exit(7)
    if word == "hang":
        child = subprocess.Popen(["sleep", "600"])
        with open(rest[0], "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        time.sleep(600)
    if word == "memory":
        np.ones(int(rest[0]) << 17)
    if poisoned:
        os.kill(os.getpid(), signal.SIGABRT)
    if word == "poison":
        poisoned.append(1)
    return None if word == "convert" else lambda arguments: run(word, arguments)

def run(word, arguments):
    if word == "crash_at_run":
        os.kill(os.getpid(), signal.SIGABRT)
    if word in ERRORS:
        raise ERRORS[word]
    return [] if word == "few" else [MADE.get(word, lambda a: a * 2)(a) for a in arguments]
"""


@pytest.fixture
def fake(tmp_path):
    """Make a consumer that does what the first word of a module's text says, with other fields where they are given."""
    (tmp_path / "fake_driver.py").write_text(DRIVER)
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    told = {"title": "Fake", "driver": "fake_driver", "environment": {"PYTHONPATH": path}, "extra": "fake"}
    return lambda **fields: Consumer("fake", **{**told, **fields})


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


def gone(file, seconds=10):
    """Whether the processes that a file names end within that time."""
    processes = file.read_text().split()
    until = time.monotonic() + seconds
    while any(map(is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, processes))


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("text", "result", "message", "cause", "stage"),
    [
        ("double", "right", "", "", "run"),
        ("convert", "crashed", "it gave the results of 0 of 1 runs", "", "run"),
        ("wrong", "wrong", "run 1 (in range): result 0 at [0]: expected 2.0, got 3.0 (3 elements differ", "", "run"),
        ("unwritten", "wrong", "run 1 (in range): result 0 at [0]: expected 2.0, got 92.0 (3 elements", "", "run"),
        ("few", "wrong", "run 1 (in range): result 0 at []: expected 1 results, got 0 results", "", "run"),
        ("refuse", "refused", "cannot take it", "stablehlo.sort", "compile"),
        ("refuse_at_run", "refused", "not with these arguments", "", "run"),
        ("raise", "refused", "ZeroDivisionError: of its own", "", "compile"),
        ("tool", "crashed", "its compiler ended by SIGSEGV", "", "compile"),
        ("segfault", "crashed", "ended by SIGSEGV", "", "compile"),
        ("crash_at_run", "crashed", "ended by SIGABRT", "", "run"),
        ("exit", "crashed", "ended, exit code 7: sorry", "", "compile"),
    ],
)
def test_each_ending_is_an_outcome(fake, text, result, message, cause, stage):
    """Whatever a consumer does to its process is told, with where it happened and what it said."""
    outcome = judged(fake(), text)
    assert (outcome.result, outcome.cause, outcome.stage) == (result, cause, stage)
    assert outcome.message.startswith(message)
    assert outcome.ok == (result == "right")


def test_what_is_compared_and_counted(fake):
    """Without expected results it ran; the runs before the one that is wrong are known to be right."""
    outcome = judge(fake(), "double", [ONE], None, rounding=EXACT)
    assert (outcome.result, outcome.ok) == ("ran", True)
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
    assert gone(tmp_path / "pids")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_memory_is_limited(fake):
    """Asking for more than is given is a crash of that module; less than it is fine."""
    outcome = judged(fake(), "memory 2048", memory=1 << 30)
    assert (outcome.result, outcome.message) == ("crashed", "it needs more memory than it is given")
    assert judged(fake(), "memory 64", memory=1 << 30).ok


def test_several_modules_share_a_process(fake):
    """For as many modules as it may; one that dies of what another did is taken alone, and has its own outcome."""
    with Judge(fake(modules_per_process=2)) as one:
        processes = []
        for _ in range(3):
            assert one.judge("double", [RUN], EXACT).ok
            processes.append(one._child._process.pid)
        assert processes[0] == processes[1] != processes[2]
    with Judge(fake(modules_per_process=10)) as one:
        assert one.judge("poison", [RUN], EXACT).ok
        after = one.judge("double", [RUN], EXACT)
        told = "after other modules in the same process: crashed, ended by SIGABRT"
        assert (after.result, after.note) == ("right", told)
        assert one.judge("double", [RUN], EXACT).note == ""
        assert one.judge("segfault", [RUN], EXACT).result == "crashed"


def test_one_that_cannot_start_says_why(fake):
    """What is not installed is named with its extra and not started; a failing import is a crash, with its error."""
    missing = fake(imports=("surely.not_there",))
    outcome = judged(missing, "double")
    told = "Fake is not installed: pip install 'hlo-lower[fake]'"
    assert (outcome.result, outcome.message) == ("not installed", told)
    with pytest.raises(InputError, match="Fake is not installed") as caught:
        verify_on(missing, DOUBLED, "double")
    assert "pip install 'hlo-lower[fake]'" in str(caught.value)
    outcome = judged(fake(driver="no_such_driver"), "double")
    assert outcome.result == "crashed"
    assert "ModuleNotFoundError: No module named 'no_such_driver'" in outcome.message


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks at processes where Linux shows them")
def test_the_child_ends_with_its_parent(fake, tmp_path):
    """Killing the process that asked ends the consumer, too, though it hangs."""
    pids = tmp_path / "pids"
    program = f"""
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.rounding import Rounding
from hlo_lower.consumers import Consumer
consumer = Consumer("fake", "Fake", "fake_driver", environment={dict(fake().environment)!r})
Judge(consumer).judge("hang {pids}", (), Rounding(()))
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    until = time.monotonic() + 60
    while not pids.exists() or not pids.read_text():
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone(pids)


DOUBLED = module("%a: 3xf32", "%r = add %a, %a")
DYNAMIC = module("%a: ?xf32", "return %a")
LOGITS = module("%a: 3xf32", "%ban = constant -1.0e30 : 1xf32; %y = add %a, %a; %r = concatenate %y, %ban, dim = 0")
PLACED = """%u = constant 5.0 : f32; %i = constant PLACE : 1xi32
    %s = scatter(%a, %i, %u) <inserted=[0], to=[0]> {assign}; %r = add %s, %s"""
SEEN, UNSEEN = (module("%a: 3xf32", PLACED.replace("PLACE", place)) for place in "19")
WRONG = "Fake any: wrong: run 1 (in range): result 0 at ["


@pytest.mark.parametrize(
    ("before", "after", "code", "summary", "more"),
    [
        (DOUBLED, "double", EXIT_OK, "Fake any: right in 3 runs",
         "  compared with XLA's results of the original: each computed float within the bound of its own rounding"),
        (DOUBLED, "refuse", EXIT_NOT_LOWERED, "Fake any: refused: cannot take it", "  names: stablehlo.sort"),
        (DOUBLED, "segfault", EXIT_NOT_LOWERED, "Fake any: crashed: ended by SIGSEGV", ""),
        (DYNAMIC, "double", EXIT_NOT_LOWERED, "Fake any: not judged: dynamic shape tensor<?xf32>", ""),
        # beside -1e30 zeros are no logits: the bound of a computed float is that of its own rounding
        (LOGITS, "logits", EXIT_OK, "Fake any: right in 3 runs", ""),
        (LOGITS, "no_logits", EXIT_DIFFERS, WRONG, ""),
        # where dropping every update changes nothing, the runs show nothing
        (UNSEEN, "double", EXIT_OK, "Fake any: right in 3 runs", f"  not exercised: {SILENT}"),
        (SEEN, "double", EXIT_DIFFERS, WRONG, ""),
    ],
)  # fmt: skip
def test_a_verdict_is_told(fake, before, after, code, summary, more):
    """A difference is 1; a refusal, a crash, and what has no results of XLA are 3; the stages are told."""
    stages = []
    verdict = verify_on(fake(), before, after, progress=lambda *stage: stages.append(stage[0]))
    assert (verdict.ok, verdict.exit_code) == (code == EXIT_OK, code)
    assert verdict.summary().startswith(summary)
    assert any(line.startswith(more) for line in verdict.lines())
    assert (more == f"  not exercised: {SILENT}") == bool(verdict.not_exercised)
    assert stages == (["XLA", "fake", "fake"] if before != DYNAMIC else ["XLA"])


def test_inputs_converters_and_names(fake):
    """Given inputs are one run; a converter's lines say that nothing was compared; an unknown name lists those."""
    verdict = verify_on(fake(), DOUBLED, "double", inputs=[ONE])
    assert verdict.summary() == "Fake any: right in 1 run"
    assert verdict.to_json()["outcome"]["result"] == "right"
    verdict = verify_on(fake(runs=False), DYNAMIC, "convert")
    assert (verdict.ok, verdict.outcome.runs) == (True, 0)
    assert verdict.lines() == ["Fake any: converted", "  it does not run here: nothing was compared"]
    assert consumer_named("iree") is IREE
    assert all(consumer.extra == consumer.name for consumer in CONSUMERS)
    with pytest.raises(InputError, match="no consumer named 'tvm'") as caught:
        consumer_named("tvm")
    assert "iree, litert, coreml" in str(caught.value)
