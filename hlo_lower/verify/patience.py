"""How long a verification may take: until a deadline, by the clock; and so many seconds in vain."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic

# --- deadline ---
#
# When a verification stops, whatever is left of it: of the clock alone, as that is what somebody waits by.


OF_TIMEOUT = "of --timeout"
"""How the reason ends why something was not begun, or was ended, behind a deadline."""


class Deadline:
    """When a verification stops.

    Args:
      seconds: from now on; None: never.
    """

    def __init__(self, seconds: float | None) -> None:
        self._until = inf if seconds is None else monotonic() + seconds
        self.reason = "" if seconds is None else f"it was not reached in the {seconds:g} s {OF_TIMEOUT}"

    @property
    def left(self) -> float:
        """The seconds until then."""
        return self._until - monotonic()

    @property
    def seconds(self) -> float:
        """The seconds that a child is waited for by the clock: one at least."""
        return max(self.left, 1.0)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is begun."""
        return self.left <= 0

    def check(self) -> None:
        """Say that it is over, where that is so: before each step of what may have many.

        Raises:
          LateError: it is over.
        """
        if self.is_over:
            raise LateError(self.reason)


class LateError(Exception):
    """A deadline is over, and nothing is known of what was at work."""


NEVER = Deadline(None)


# --- patience ---
#
# How long a verification waits in vain: what succeeds may take its time, what does not end has so many seconds in all.
#
# A large module may take minutes and is worth them. A loop that does not end, and a text that XLA compiles for hours,
# are worth a minute, all of them together: what is late is charged, and once nothing is left nothing dear is tried.

TIME_LIMIT = 60
"""Seconds, by default; twice in all, as the whole modules have as many while their regions are judged."""


LEAST = 5.0
"""Seconds that each region has, whatever was spent before."""


class Patience:
    """The seconds that are left.

    Attributes:
      given: at first.
      left: of these.
      deadline: when all stops, whatever is left.
    """

    def __init__(self, given: float, deadline: Deadline = NEVER) -> None:
        self.given = self.left = given
        self.deadline = deadline

    def charge(self, seconds: float) -> None:
        """Take away what was spent in vain."""
        self.left -= seconds

    @property
    def is_over(self) -> bool:
        """Whether nothing is left that is worth a try."""
        return self.left < 1.0

    @property
    def of_region(self) -> float:
        """The seconds for a region, its widenings and their runs together: a few are left in any case."""
        return max(self.left, LEAST)

    def describe_limit(self, what: str) -> str:
        """The reason why something was stopped or not started."""
        return f"{what} more than the {self.given:.0f} s of --patience"


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


def patience() -> Patience:
    """That of the verification that runs; outside of one a fresh one."""
    return _current.get() or Patience(TIME_LIMIT)


def deadline_of(timeout: float | None) -> Deadline:
    """That of the verification that this one is a part of; else one so many seconds from now on."""
    around = patience().deadline
    return Deadline(timeout) if around.left == inf else around


@contextmanager
def at_most(seconds: float, deadline: Deadline = NEVER) -> Generator[None]:
    """Wait so many seconds in vain within, and begin nothing behind a deadline; threads that are started take it along
    by `contextvars.copy_context`."""
    token = _current.set(Patience(seconds, deadline))
    try:
        yield
    finally:
        _current.reset(token)
