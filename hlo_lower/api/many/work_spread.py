"""How the work on many modules is spread: processes, an executor, a time limit; and who is told of it."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypedDict

from hlo_lower.base.arguments import progress, seconds, short_repr, whole
from hlo_lower.base.errors import InputError
from hlo_lower.lowering.options import Keywords


class _Spread(TypedDict, total=False):
    jobs: int
    executor: Executor | None
    timeout: float | None
    progress: Callable[[str, int, int], None] | None


class SpreadKeywords(Keywords, _Spread, total=False):
    """The keywords of `classify_modules`: those of `Options` and of `Spread`."""


SPREAD = tuple(_Spread.__annotations__)
"""The keywords of `Spread`."""


@dataclass(frozen=True)
class Spread:
    """How work is spread; `classify_modules` says what each attribute is. InputError if a value is of a wrong type,
    or a time limit is given with an executor."""

    jobs: int = 1
    executor: Executor | None = None
    timeout: float | None = None
    progress: Callable[[str, int, int], None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "jobs", whole("jobs", self.jobs, 1))
        progress(self.progress)
        if self.executor is not None and not callable(getattr(self.executor, "submit", None)):
            raise InputError(
                "executor",
                f"{short_repr(self.executor)} has no submit",
                facts=f"it is of type {type(self.executor).__name__}",
                next_step="give a concurrent.futures executor, or jobs",
            )
        if self.timeout is None:
            return
        seconds("timeout", self.timeout)
        if self.executor is not None:
            raise InputError("", "an executor cannot be held to a time limit", next_step="use jobs instead of executor")
