"""How long a verification waits in vain: what succeeds may take its time, what does not end has so many seconds in all.

A large module may take minutes and is worth them. A loop that does not end, and a text that XLA compiles for hours, are
worth a minute, all of them together: what is late is charged, and once nothing is left nothing dear is tried.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

TIME_LIMIT = 60
"""Seconds, by default; twice in all, as the whole modules have as many while their regions are judged."""


LEAST = 5.0
"""Seconds that each region has, whatever was spent before."""


class Patience:
    """The seconds that are left.

    Attributes:
      given: at first.
      left: of these.
    """

    def __init__(self, given: float) -> None:
        self.given = self.left = given

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

    def told(self, what: str) -> str:
        """Why something ended, or was not begun."""
        return f"{what} more than the {self.given:.0f} s of --time-limit"


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


def patience() -> Patience:
    """That of the verification that runs; outside of one a fresh one."""
    return _current.get() or Patience(TIME_LIMIT)


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    """Wait so many seconds in vain within; threads that are started take it along by `contextvars.copy_context`."""
    token = _current.set(Patience(seconds))
    try:
        yield
    finally:
        _current.reset(token)
