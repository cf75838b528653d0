"""How a process ended, and what a user is told of an input that it died of."""

import signal
from contextlib import suppress

from hlo_lower.containment.status_board import lowering_seconds_for, memory_for, seconds_for
from hlo_lower.errors import InputError, NotLoweredError

EXPORT_AGAIN = "export the module again; if it is whole, please report it with the module"


def ending(code: int | None) -> str:
    """How a process ended, in words: code is negative for a signal."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"
    return f"exit code {code}"


def died_reading(module: str, size: int, code: int) -> InputError:
    """The error for a module of which the process that read it died."""
    return InputError(
        module,
        f"the process that read it died: {ending(code)}",
        facts=f"{size:,} bytes, damaged or nested too deeply for jaxlib's parser",
        next_step=EXPORT_AGAIN,
    )


def died_working(module: str, code: int) -> InputError:
    """The error for a module that was read, and of which the process that worked on it died."""
    facts = "SIGKILL often means that the memory was used up" if code == -signal.SIGKILL else ""
    return InputError(
        module,
        f"the process that worked on it died: {ending(code)}",
        facts=facts,
        next_step="please report it with the module",
    )


def too_late(module: str, size: int) -> InputError:
    """The error for a module that takes too long to read."""
    return InputError(
        module,
        f"was not read after {seconds_for(size):.0f} s, the time for a module of {size:,} bytes",
        next_step=EXPORT_AGAIN,
    )


def too_large(module: str, size: int) -> InputError:
    """The error for a module that takes too much memory to read."""
    return InputError(
        module,
        f"took more than {memory_for(size) / 2**30:.1f} GiB to read, the memory for a module of {size:,} bytes",
        next_step=EXPORT_AGAIN,
    )


def lowered_too_late(module: str, size: int) -> NotLoweredError:
    """The error for a module that takes too long to classify or lower."""
    return NotLoweredError(
        module,
        f"was not lowered after {lowering_seconds_for(size):.0f} s, the time for a module of {size:,} bytes",
        facts="it was read; the process that lowered it was ended, and nothing was written",
        nearest=(_SMALLER,),
        next_step=_REPORT,
    )


def lowered_too_large(module: str, size: int) -> NotLoweredError:
    """The error for a module that takes too much memory to classify or lower."""
    memory = memory_for(size) / 2**30
    return NotLoweredError(
        module,
        f"took more than {memory:.1f} GiB to lower, the memory for a module of {size:,} bytes",
        facts="it was read; the process that lowered it was ended, and nothing was written",
        nearest=(_SMALLER,),
        next_step=_REPORT,
    )


_SMALLER = "a part of it may be lowered: export fewer layers, or its functions one by one"
_REPORT = "please report it with the module"
