"""What became of a module at a consumer: the outcomes, the errors by which a consumer's code says one, and messages."""

import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from hlo_lower.ops.names import CUSTOM_CALL

MESSAGE_LENGTH = 200

_QUOTED_OP = re.compile(r"'((?:[a-z_]\w*\.)+[a-z_]\w*)'(?! attribute)")
_TARGET = re.compile(r"stablehlo\.custom_call @([\w.$-]+)|call_target_name = \"([^\"]+)\"")
_DEATH = re.compile(
    r"free\(\)|malloc|realloc|corrupt|unaligned|chunk|Assertion|Check failed|terminate called|bad_alloc|"
    r"LLVM ERROR|[Ff]atal|\berror:"
)
_NOTHING_SAID = re.compile(r"^(Traceback|\s*File |\s*\^|\s*~)")


def first_line(message: str) -> str:
    """The first line that says something, of a length that fits a table."""
    lines = (line.strip() for line in message.splitlines() if line.strip() and not _NOTHING_SAID.match(line))
    return next(lines, "")[:MESSAGE_LENGTH]


def named_op(message: str) -> str:
    """The first operation that a message of MLIR names in quotes ('stablehlo.sort'), or ""."""
    found = _QUOTED_OP.search(message)
    return found[1] if found else ""


def cause_of(message: str) -> str:
    """The op that a refusal is about; of a custom call also its target."""
    errors = [line.split("error: ", 1)[1] for line in message.splitlines() if "error: " in line]
    cause = next((op for error in errors if (op := named_op(error))), "")
    if cause == CUSTOM_CALL and (target := _TARGET.search(message)):
        cause += f" @{target[1] or target[2]}"
    return cause


def death_words(message: str) -> str:
    """The last line in which a process says what kills it: the allocator, an assertion, an exception; "" without."""
    lines = (line.strip() for line in reversed(message.splitlines()) if _DEATH.search(line))
    return next(lines, "")[:MESSAGE_LENGTH]


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


Array = NDArray[Any]

Result: TypeAlias = Literal["right", "wrong", "ran", "converted", "refused", "crashed", "timed out", "not installed"]
"""Right and wrong by XLA's results; ran: there was nothing to compare with; converted: the consumer takes the module
and does not run here; refused: it says no; crashed: the process died, or a tool of the consumer did, memory that was
used up or corrupted included."""

TAKEN: tuple[Result, ...] = ("right", "ran", "converted")
"""What is fine."""


@dataclass(frozen=True)
class ConsumerOutcome:
    """What became of a module at a consumer.

    Attributes:
      consumer: its name.
      result: see `Result`.
      message: one line: what differs, or the first line of what the consumer said.
      cause: the op that a refusal names ("stablehlo.sort"), or "".
      stage: "compile" or "run", where it ended; "" where there was neither.
      runs: how many runs came out well.
      seconds: wall time of the compilation and all runs.
      note: what else is to be known, or "".
    """

    consumer: str
    result: Result
    message: str = ""
    cause: str = ""
    stage: Literal["compile", "run", ""] = ""
    runs: int = 0
    seconds: float = 0.0
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the consumer takes the module, and computes the right numbers where it was run."""
        return self.result in TAKEN

    def __str__(self) -> str:
        return f"{self.consumer}: {self.result}{f': {self.message}' if self.message else ''}"


@dataclass(frozen=True)
class ConsumerRun:
    """Arguments of a module, and its results under XLA; None where there is nothing to compare with.

    Attributes:
      arguments: arrays, by position.
      expected: arrays, by position.
      what: what the arguments are like ("in range"), or "".
      limits: makes the bounds of the results' elements (`verify.bounds.rounding_bounds`); None where all is
        compared bit for bit.
    """

    arguments: Sequence[Array]
    expected: Sequence[Array] | None = None
    what: str = ""
    limits: Callable[[], Sequence[Array]] | None = field(default=None, compare=False)


class Build(NamedTuple):
    """A file that a consumer's compiler is to make of a module: its name, and what the compiler is given beside."""

    path: str
    flags: Sequence[str] = ()


class RefusedError(Exception):
    """The consumer says no: the message, and the op that it names."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message, cause)
        self.message, self.cause = message, cause


class RunsElsewhereError(Exception):
    """The consumer takes the module, and what it makes of it does not run on this machine: the message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ToolCrashedError(Exception):
    """A tool that the consumer runs as a process of its own died: the message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
