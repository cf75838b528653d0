"""How a process ended, and what a user is told of an input that it died of."""

import signal

from hlo_lower.base.child import ending
from hlo_lower.base.contained.status_board import lowering_seconds_for, memory_for, seconds_for
from hlo_lower.base.errors import InputError, NotLoweredError

REPORT = "please report it with the module"
EXPORT_AGAIN = "export the module again; if it is whole, please report it with the module"


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
    return InputError(module, f"the process that worked on it died: {ending(code)}", facts=facts, next_step=REPORT)


def too_late(module: str, size: int) -> InputError:
    """The error for a module that takes too long to read."""
    what = f"was not read after {seconds_for(size):.0f} s, the time for a module of {size:,} bytes"
    return InputError(module, what, next_step=EXPORT_AGAIN)


def too_large(module: str, size: int) -> InputError:
    """The error for a module that takes too much memory to read."""
    what = f"took more than {memory_for(size) / 2**30:.1f} GiB to read, the memory for a module of {size:,} bytes"
    return InputError(module, what, next_step=EXPORT_AGAIN)


def lowered_too_late(module: str, size: int) -> NotLoweredError:
    """The error for a module that takes too long to classify or lower."""
    seconds = lowering_seconds_for(size)
    return _not_lowered(module, f"was not lowered after {seconds:.0f} s, the time for a module of {size:,} bytes")


def lowered_too_large(module: str, size: int) -> NotLoweredError:
    """The error for a module that takes too much memory to classify or lower."""
    memory = memory_for(size) / 2**30
    what = f"took more than {memory:.1f} GiB to lower, the memory for a module of {size:,} bytes"
    return _not_lowered(module, what)


def _not_lowered(module: str, what: str) -> NotLoweredError:
    return NotLoweredError(
        module,
        what,
        facts="it was read; the process that lowered it was ended, and nothing was written",
        nearest=("a part of it may be lowered: export fewer layers, or its functions one by one",),
        next_step=REPORT,
    )
