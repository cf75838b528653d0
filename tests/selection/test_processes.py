"""Work in processes that die, hang or answer."""

import gc
import multiprocessing
import os
import signal
import sys
import time

import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.base.processes import Lost, in_processes, in_turn


def double(number):
    """Twice a number; 13 kills the process, 14 ends it, 15 hangs."""
    if number == 13:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 14:
        sys.exit(7)
    if number == 15:
        time.sleep(600)
    return 2 * number


def fail():
    """Keep a process from getting ready."""
    os._exit(3)


def answers(works, **how):
    """The answers in the order of the works."""
    return [answer for _, answer in sorted(in_processes(double, works, **how), key=lambda pair: pair[0])]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_process_that_dies_loses_its_own_work_only(jobs):
    """The piece that killed it says how it died; all others are done, also those behind it."""
    segfault, exited = (Lost(f"the process that worked on it died: {how}") for how in ("signal SIGSEGV", "exit code 7"))
    assert answers([1, 13, 2, 14, 3], jobs=jobs) == [2, segfault, 4, exited, 6]
    assert multiprocessing.active_children() == []


def test_a_process_that_hangs_is_killed():
    """What is late is lost; what comes after it is done in a fresh process."""
    start = time.monotonic()
    assert answers([15, 1], jobs=1, timeout=0.5) == [Lost("was not done after 0.5 s, the time for a module"), 2]
    assert time.monotonic() - start < 60
    assert multiprocessing.active_children() == []


def test_processes_end_when_nobody_listens():
    """Closing the generator, as an interrupt does, leaves no process behind, even one that hangs."""
    work = in_processes(double, [1, 15, 15], jobs=2)
    assert next(work) == (0, 2)
    assert len(multiprocessing.active_children()) == 2
    work.close()
    assert multiprocessing.active_children() == []


def test_processes_that_cannot_start_are_an_error():
    """They are not started for ever; the message names the usual reason."""
    with pytest.raises(InputError, match=r"could not start: exit code 3\n  next: .*__main__"):
        list(in_processes(double, [1, 2], jobs=2, prepare=fail))
    assert multiprocessing.active_children() == []


def variable(name):
    """A variable of the environment of a process."""
    return os.environ.get(name, "")


def test_a_process_has_the_environment_of_its_start(monkeypatch):
    """Also where the server that it is forked from was started in another one."""
    for value in ("one", "two"):
        monkeypatch.setenv("A_VARIABLE", value)
        assert list(in_processes(variable, ["A_VARIABLE"], jobs=1)) == [(0, value)]
    monkeypatch.delenv("A_VARIABLE")
    assert list(in_processes(variable, ["A_VARIABLE"], jobs=1)) == [(0, "")]


def test_interrupts_reach_this_process_only():
    """Control-C is handled as before once a process has started; nothing is started for nothing."""
    assert answers([], jobs=4) == []
    before = signal.getsignal(signal.SIGINT)
    assert answers([1], jobs=1) == [2]
    assert signal.getsignal(signal.SIGINT) is before


def own_process(_work):
    return os.getpid()


@pytest.mark.parametrize(("most_memory", "processes"), [(0, 3), (1 << 40, 1)])
def test_a_process_that_has_held_much_gets_no_further_piece(most_memory, processes):
    """Another one takes its place, and nothing is lost."""
    found = dict(in_processes(own_process, range(3), jobs=1, most_memory=most_memory))
    assert sorted(found) == [0, 1, 2]
    assert len(set(found.values())) == processes


@pytest.mark.parametrize("is_frozen", [False, True])
def test_the_collector_leaves_alone_what_is_there_after_the_first_piece(is_frozen):
    """Until the last one, or until nobody listens; where somebody else has frozen objects, they stay frozen."""
    if is_frozen:
        gc.freeze()
    try:
        before = gc.get_freeze_count()
        frozen = [(answer, gc.get_freeze_count() > before) for _, answer in in_turn(double, [1, 2, 3])]
        assert frozen == [(2, False), (4, not is_frozen), (6, not is_frozen)]
        work = in_turn(double, [1, 2, 3])
        assert [next(work), next(work)] == [(0, 2), (1, 4)]
        work.close()
        assert bool(gc.get_freeze_count()) == is_frozen
    finally:
        gc.unfreeze()
