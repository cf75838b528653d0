"""Where the choices of a random case come from: one small protocol, so that one generator serves every source.

`Seeded` draws from a seed (the long runs), `Replayed` from a list of earlier choices (shrinking), and
`case_strategy` from hypothesis. The first choice is the simplest one: both kinds of shrinking go there.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

T = TypeVar("T")


class Source(Protocol):
    """Gives integers of a closed range."""

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]; low is the simplest."""
        ...


class Draw:
    """Choices of a generator, made of the integers of a source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]; low is the simplest."""
        return low if low >= high else self._source.integer(low, high)

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in so many cases of a hundred; False is simpler."""
        return self.integer(0, 99) >= 100 - percent

    def permutation(self, size: int) -> list[int]:
        """An order of range(size); as it is in most cases, and that is the simplest."""
        order = list(range(size))
        if size > 1 and self.chance(50):
            for i in range(size - 1):
                j = self.integer(i, size - 1)
                order[i], order[j] = order[j], order[i]
        return order

    def subset(self, size: int, count: int) -> list[int]:
        """So many numbers of range(size), sorted; the last ones are the simplest."""
        if self.chance(40):
            return sorted(self.permutation(size)[:count])
        return list(range(size - count, size))


class Seeded:
    """Choices from a seed, recorded."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(list(seed))
        self.record: list[int] = []

    def integer(self, low: int, high: int) -> int:
        """See `Source`."""
        value = int(self._rng.integers(low, high, endpoint=True))
        self.record.append(value - low)
        return value


class Replayed:
    """Earlier choices, as distances from the simplest one: cut to the range, and the simplest where there are no more.

    The record is what was used of them.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = choices
        self.record: list[int] = []

    def integer(self, low: int, high: int) -> int:
        """See `Source`."""
        place = len(self.record)
        step = self._choices[place] if place < len(self._choices) else 0
        self.record.append(min(step, high - low))
        return low + self.record[-1]
