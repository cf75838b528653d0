"""Work spread over processes of which any may die or hang: what it worked on is lost, with the reason, nothing else.

Each process has one piece of work at a time, so that a crash is never another piece's fault. Processes are not forked
from this one: JAX has threads, which a fork does not survive. On Linux they are forked from a server that has imported
what the work needs and started nothing, which takes 20 ms where a spawned process takes a second.
"""

import gc
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from hlo_lower.base.child import ending
from hlo_lower.base.errors import InputError

MOST_MEMORY = 3 << 29
"""Bytes that a process has held when another one takes its place: four times what holds one that compiled little."""

Work = TypeVar("Work")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Lost:
    """Work without an answer, and why there is none."""

    reason: str


def in_turn(call: Callable[[Work], Answer], works: Iterable[Work]) -> Generator[tuple[int, Answer]]:
    """Call a function on each piece of work in this process, and give each one's number and answer as they come.

    What is there after the first piece, which loads what all of them need, stays until the last one: the collector need
    not look through it again and again, which takes 0.1 s each time.
    """
    may_freeze = not gc.get_freeze_count()
    try:
        for number, work in enumerate(works):
            yield number, call(work)
            if may_freeze and not number:
                gc.freeze()
    finally:
        if may_freeze:
            gc.unfreeze()


def in_processes(
    call: Callable[[Work], Answer],
    works: Sequence[Work],
    *,
    jobs: int,
    timeout: float | None = None,
    prepare: Callable[[], None] | None = None,
    most_memory: int = MOST_MEMORY,
) -> Generator[tuple[int, Answer | Lost]]:
    """Call a function on each piece of work, and give each one's number and answer as they come.

    Args:
      call: a function that can be pickled; work and answers are, too.
      works: the pieces.
      jobs: how many processes, at least 1.
      timeout: seconds for a piece; a process that takes longer is killed. The start of a process is not counted.
      prepare: called once in each process before its first piece.
      most_memory: a process that has held more bytes than these gets no further piece: XLA keeps some of what it
        compiles, so that memory would grow with the number of pieces.

    Raises:
      InputError: a process ends before it can work.
    """
    waiting = deque(range(len(works)))
    lanes = [_Lane(call, prepare, most_memory) for _ in range(min(jobs, len(works)))]
    try:
        while waiting or any(lane.work is not None for lane in lanes):
            heard = wait([lane.pipe for lane in lanes], _patience(lanes))
            for lane in [lane for lane in lanes if lane.pipe in heard or lane.is_late()]:
                number, answer = lane.work, lane.answer(timeout)
                lane.work = None
                if isinstance(answer, Lost) or lane.is_full:
                    lanes.remove(lane)
                    lane.stop()
                    if waiting:
                        lanes.append(_Lane(call, prepare, most_memory))
                elif waiting:
                    lane.give(waiting[0], works[waiting[0]], timeout)
                    waiting.popleft()
                if number is not None and answer is not None:
                    yield number, answer
    finally:
        for lane in lanes:
            lane.stop()


class _Lane(Generic[Work, Answer]):
    """A process, and the number of what it works on."""

    def __init__(self, call: Callable[[Work], Answer], prepare: Callable[[], None] | None, most_memory: int) -> None:
        context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        context.set_forkserver_preload(["jax", call.__module__])  # by the first process; the server stays
        self.pipe, other = context.Pipe()
        work = (dict(os.environ), call, prepare, most_memory, other)
        self.process = context.Process(target=_serve, args=work, daemon=True)
        with _interrupts_ignored():
            self.process.start()
        other.close()
        self.work: int | None = None
        self.deadline = float("inf")
        self.ready = self.is_full = False

    def give(self, number: int, work: Work, timeout: float | None) -> None:
        """Send a piece of work."""
        self.work = number
        self.deadline = float("inf") if timeout is None else time.monotonic() + timeout
        with suppress(OSError):  # it has died meanwhile, which the next answer says
            self.pipe.send(work)

    def answer(self, timeout: float | None) -> Answer | Lost | None:
        """What the process says; None when it says that it is ready for the first piece.

        Raises:
          InputError: it ended before that.
        """
        if self.is_late() and not self.pipe.poll():
            return Lost(f"was not done after {timeout:g} s, the time for a module")
        try:
            said, self.is_full = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            if not self.ready:
                raise InputError(
                    "",
                    f"a process for the work could not start: {ending(self.process.exitcode)}",
                    next_step='call it below `if __name__ == "__main__":`, or use one job, which needs no process',
                ) from None
            return Lost(f"the process that worked on it died: {ending(self.process.exitcode)}")
        self.ready = True
        self.deadline = float("inf")
        return said

    def is_late(self) -> bool:
        """Whether the time of its piece is over."""
        return time.monotonic() >= self.deadline

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


def _patience(lanes: "Sequence[_Lane[Work, Answer]]") -> float | None:
    """Seconds until the first piece is late; None where none can be."""
    first = min(lane.deadline for lane in lanes)
    return None if first == float("inf") else max(first - time.monotonic(), 0)


def _serve(
    environment: Mapping[str, str],
    call: Callable[[Work], Answer],
    prepare: Callable[[], None] | None,
    most_memory: int,
    pipe: "Connection[tuple[Answer | None, bool], Work]",
) -> None:
    """The life of a process: get ready, then answer until the other side has gone; with each answer whether it has held
    too much. Its environment is that of who starts it now, not of the server's start."""
    os.environ.clear()
    os.environ.update(environment)
    if prepare is not None:
        prepare()
    pipe.send((None, False))
    works = (pipe.recv() for _ in repeat(None))
    with suppress(EOFError, OSError):
        for _, answer in in_turn(call, works):
            pipe.send((answer, largest_so_far() > most_memory))


def largest_so_far() -> int:
    """The most bytes of memory that this process has held."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else held * 1024


@contextmanager
def _interrupts_ignored() -> Generator[None]:
    """Have a process that is started here ignore Control-C, which the terminal sends to all: this one ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
