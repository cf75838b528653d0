"""Judge batches in processes of their own: XLA and the bindings can take a process down, and that is a finding.

A batch whose process dies, or takes too long, is halved until one case stands alone.
"""

import signal
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, cast

from hlo_lower.testing.case import Case
from hlo_lower.testing.case_outcome import CaseOutcome
from hlo_lower.testing.judging import Judged
from hlo_lower.testing.what_shows import FloatMode, Policy

TIME_LIMIT = 600.0
"""Seconds for one batch."""

START_LIMIT = 600.0
"""Seconds that a process may take to start."""

BATCHES_PER_PROCESS = 60
"""After so many a process is replaced: XLA keeps memory of what it compiled (20 MB and more a batch)."""


def serve(connection: "Connection[Any, Any]", oob: Policy, prefer: Sequence[str], float_mode: FloatMode) -> None:
    """Judge what comes until nothing more does: the work of a child."""
    from hlo_lower.testing.judging import judge
    from hlo_lower.testing.lowering import built_in

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its children
    lower = built_in(oob, prefer, float_mode)
    try:
        connection.send(None)  # ready: the time of the first batch counts from here
        while True:
            connection.send(judge(cast(Sequence[Case], connection.recv()), lower, oob))
    except (EOFError, ConnectionError):
        pass  # the parent is gone


@dataclass
class _Child:
    """A process and what it works on."""

    process: Any
    connection: "Connection[Any, Any]"
    batch: Sequence[Case] = ()
    since: float = 0.0
    served: int = 0
    is_ready: bool = False


@dataclass
class Pool:
    """Processes that judge batches.

    Attributes:
      jobs: how many.
      oob: the policy.
      prefer: rules that are taken wherever they are right.
      float_mode: whether sums and products of floats keep their order.
      time_limit: seconds for one batch.
      target: what a process runs; `serve`, but in tests.
    """

    jobs: int
    oob: Policy
    prefer: tuple[str, ...] = ()
    float_mode: FloatMode = "exact"
    time_limit: float = TIME_LIMIT
    target: Callable[..., None] = serve
    _idle: list[_Child] = field(default_factory=list[_Child])
    _busy: list[_Child] = field(default_factory=list[_Child])

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        for child in (*self._idle, *self._busy):
            self._end(child)

    def judge(self, batches: Iterable[Sequence[Case]]) -> Generator[tuple[Sequence[Case], Judged]]:
        """Each batch, or each of its parts, with what became of it, as they are done."""
        fresh, halves = iter(batches), list[Sequence[Case]]()
        busy, idle = self._busy, self._idle
        while True:
            while len(busy) < self.jobs:
                batch = halves.pop() if halves else next(fresh, None)
                if batch is None:
                    break
                busy.append(self._given(batch))
            if not busy:
                return
            ready = wait([child.connection for child in busy], timeout=1.0)
            for child in list(busy):
                late = monotonic() - child.since > (self.time_limit if child.is_ready else START_LIMIT)
                if child.connection not in ready and not late:
                    continue
                batch = child.batch
                try:
                    if child.connection not in ready:
                        raise TimeoutError
                    answer = child.connection.recv()
                    if answer is None:
                        child.is_ready, child.since = True, monotonic()
                        continue
                    judged = cast(Judged, answer)
                    busy.remove(child)
                except (EOFError, ConnectionError, TimeoutError) as error:
                    busy.remove(child)
                    self._end(child)
                    if len(batch) > 1:
                        halves += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
                        continue
                    judged = Judged([CaseOutcome(batch[0].name, failure=_death(child, error, self.time_limit))])
                else:
                    child.served += 1
                    self._end(child) if child.served >= BATCHES_PER_PROCESS else idle.append(child)
                yield batch, judged

    def _given(self, batch: Sequence[Case]) -> _Child:
        """A child that has been given a batch; an idle one may have died since."""
        while self._idle:
            child = self._idle.pop()
            try:
                child.connection.send(batch)
            except ConnectionError:
                self._end(child)
                continue
            child.batch, child.since = batch, monotonic()
            return child
        child = self._start()
        child.batch, child.since = batch, monotonic()
        child.connection.send(batch)
        return child

    def _start(self) -> _Child:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=self.target, args=(theirs, self.oob, self.prefer, self.float_mode), daemon=True
        )
        process.start()
        theirs.close()
        return _Child(process, cast(Any, ours))

    @staticmethod
    def _end(child: _Child) -> None:
        child.connection.close()
        child.process.join(timeout=0.5)
        if child.process.is_alive():
            child.process.kill()
            child.process.join()


def _death(child: _Child, error: Exception, limit: float) -> str:
    if isinstance(error, TimeoutError):
        return f"not done in {limit:.0f} s"
    return f"the process died, exit code {child.process.exitcode}"
