"""Judge modules at a consumer: right, wrong, refused, crashed or timed out; nothing that it does ends this process.

A child takes several modules, where that is safe, because some consumers need seconds to start. A module that ends
badly after others is taken once more, alone in a process of its own: only what it does there is its own.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from hlo_lower.consumers.child import ConsumerProcess, DiedError, LateError
from hlo_lower.consumers.consumer import Consumer
from hlo_lower.consumers.consumer_outcome import Array, Build, ConsumerOutcome, ConsumerRun
from hlo_lower.consumers.rounding import Limits, Rounding

LIMIT = 180.0
"""Seconds for a module, its runs included, where nothing else is said."""

MEMORY = 8 << 30
"""Bytes of memory for a consumer's process, where nothing else is said."""

DOUBTFUL = ("wrong", "crashed", "timed out")
"""Results that another module in the same process may be to blame for."""


class Judge:
    """Judges modules one after the other, each in `limit` seconds; a process of the consumer may have `memory` bytes,
    with 0 as many as it asks for."""

    def __init__(self, consumer: Consumer, *, limit: float = LIMIT, memory: int = MEMORY) -> None:
        self.consumer = consumer
        self._limit, self._memory = limit, memory
        self._version = consumer.version()
        self._child: ConsumerProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def judge(
        self, text: str, runs: Sequence[ConsumerRun], rounding: Rounding, build: Build | None = None
    ) -> ConsumerOutcome:
        """Compile a module there, run it (what is built from its file) on the arguments of runs, and compare with what
        XLA makes of them."""
        if not self._version:
            error = self.consumer.not_installed()
            return ConsumerOutcome(self.consumer.name, "not installed", f"{error.what}: {error.next_step}")
        if self._child is not None and self._child.taken >= self.consumer.modules_per_process:
            self.close()
        was_alone = self._child is None
        outcome = self._attempt(text, runs, rounding, build)
        if was_alone or outcome.result not in DOUBTFUL:
            return outcome
        self.close()
        alone = self._attempt(text, runs, rounding, build)
        if alone.result == outcome.result:
            return alone
        return replace(alone, note=f"after other modules in the same process: {outcome.result}, {outcome.message}")

    def _attempt(
        self, text: str, runs: Sequence[ConsumerRun], rounding: Rounding, build: Build | None
    ) -> ConsumerOutcome:
        start = time.monotonic()
        child = self._child = self._child or ConsumerProcess(self.consumer, self._memory)
        runs = runs if self.consumer.runs else ()
        step = _Steps(runs, rounding)
        told: dict[str, Any] = {}
        try:
            for answer in child.ask(text, [run.arguments for run in runs], self._limit, build):
                told = step.after(answer)
                if told:
                    break
        except DiedError as error:
            told = {"result": "crashed", "message": str(error)}
        except LateError:
            told = {"result": "timed out", "message": f"not done within {self._limit:,.0f} s"}
        finally:
            if told.get("result") in DOUBTFUL:
                self.close()
        seconds = time.monotonic() - start
        return ConsumerOutcome(self.consumer.name, stage=step.stage, runs=step.right, seconds=seconds, **told)


class _Steps:
    def __init__(self, runs: Sequence[ConsumerRun], rounding: Rounding) -> None:
        self._runs, self._rounding = runs, rounding
        self.stage: Literal["compile", "run", ""] = "compile"
        self.right = 0

    def after(self, answer: tuple[Any, ...]) -> dict[str, Any]:
        """What an answer means: the fields of the outcome, empty where it is not decided yet."""
        match answer:
            case ("compiled",):
                self.stage = "run"
            case ("results", results):
                return self._compare(self._runs[self.right], results)
            case ("done",):
                return self._outcome()
            case ("elsewhere", message):
                return {"result": "converted", "note": message}
            case (("refused" | "crashed") as result, message, cause):
                return {"result": result, "message": message, "cause": cause}
            case _:
                return {"result": "crashed", "message": f"its process answered {answer[0]!r}"}
        return {}

    def _outcome(self) -> dict[str, Any]:
        if not self._runs:
            return {"result": "converted"}
        if self.right < len(self._runs):
            return {"result": "crashed", "message": f"it gave the results of {self.right} of {len(self._runs)} runs"}
        return {"result": "right" if any(run.expected is not None for run in self._runs) else "ran"}

    def _compare(self, run: ConsumerRun, results: Sequence[Array]) -> dict[str, Any]:
        found = None if run.expected is None else self._rounding.difference(run.expected, results, run.limits)
        if found is not None:
            return {"result": "wrong", "message": f"run {self.right + 1}{run.what and f' ({run.what})'}: {found}"}
        self.right += 1
        return {}


def judge(
    consumer: Consumer,
    text: str,
    arguments: Sequence[Array],
    expected: Sequence[Array] | None,
    *,
    rounding: Rounding,
    limits: Limits | None = None,
    limit: float = LIMIT,
    memory: int = MEMORY,
) -> ConsumerOutcome:
    """Judge one module on one set of arguments: see `Judge`; without limits all bits are to be the same."""
    with Judge(consumer, limit=limit, memory=memory) as one:
        return one.judge(text, [ConsumerRun(arguments, expected, limits=limits)], rounding)
