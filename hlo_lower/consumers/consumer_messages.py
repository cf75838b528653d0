"""What a compiler's message says: its first line, and the op that it is about."""

import re
import signal

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
