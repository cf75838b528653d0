"""Where a part begins: a sum of loop counters, of what was clamped and of starts known only when it runs.

Two positions that are equal as objects are equal numbers, whatever the counters are; each has bounds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias


@dataclass(frozen=True)
class LoopCounter:
    """The counter of a loop, 0 to `trips` - 1; `loop` tells loops apart."""

    loop: int
    trips: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest."""
        return 0, self.trips - 1


@dataclass(frozen=True)
class RuntimeStart:
    """A number that a module computes, clamped to [0, last] by the op that reads it; `number` is its value number."""

    number: int
    last: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest."""
        return 0, self.last


@dataclass(frozen=True)
class AtMost:
    """The lesser of a position and a constant."""

    position: "Position"
    most: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest."""
        low, high = self.position.bounds
        return min(low, self.most), min(high, self.most)


Unknown: TypeAlias = LoopCounter | RuntimeStart | AtMost


@dataclass(frozen=True)
class Position:
    """`constant` and the sum of each unknown times its factor, which is not 0; in a fixed order."""

    constant: int = 0
    terms: tuple[tuple[Unknown, int], ...] = ()

    @staticmethod
    def of(unknown: Unknown) -> "Position":
        """An unknown alone; its value where its bounds leave one."""
        low, high = unknown.bounds
        return Position(low) if low == high else Position(0, ((unknown, 1),))

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest that it may be."""
        low = high = self.constant
        for unknown, factor in self.terms:
            ends = sorted(factor * end for end in unknown.bounds)
            low, high = low + ends[0], high + ends[1]
        return low, high

    @property
    def is_constant(self) -> bool:
        """Whether it is one number."""
        return not self.terms

    def plus(self, other: "Position", factor: int = 1) -> "Position":
        """The sum with so many times another one."""
        found: dict[Unknown, int] = dict(self.terms)
        for unknown, times in other.terms:
            found[unknown] = found.get(unknown, 0) + factor * times
        terms = sorted(((u, n) for u, n in found.items() if n), key=lambda pair: repr(pair[0]))
        return Position(self.constant + factor * other.constant, tuple(terms))

    def times(self, factor: int) -> "Position":
        """So many times it."""
        return Position().plus(self, factor)

    def over(self, divisor: int) -> "Position | None":
        """It divided, where every term can be; None else."""
        numbers = (self.constant, *(factor for _, factor in self.terms))
        if any(number % divisor for number in numbers):
            return None
        return Position(self.constant // divisor, tuple((u, factor // divisor) for u, factor in self.terms))

    def at_most(self, most: int) -> "Position":
        """The lesser of it and a constant."""
        low, high = self.bounds
        if high <= most:
            return self
        return Position(most) if low >= most else Position.of(AtMost(self, most))

    def counters(self) -> set[LoopCounter] | None:
        """The counters that it depends on; None where it depends on something else."""
        found: set[LoopCounter] = set()
        for unknown, _ in self.terms:
            if isinstance(unknown, RuntimeStart):
                return None
            inner = {unknown} if isinstance(unknown, LoopCounter) else unknown.position.counters()
            if inner is None:
                return None
            found |= inner
        return found

    def at(self, values: Mapping[LoopCounter, int]) -> int:
        """The number that it is, the counters given."""
        total = self.constant
        for unknown, factor in self.terms:
            if isinstance(unknown, LoopCounter):
                total += factor * values[unknown]
            else:
                assert isinstance(unknown, AtMost)
                total += factor * min(unknown.position.at(values), unknown.most)
        return total


ZERO = Position()


def shifted(offsets: Iterable[Position], more: Iterable[Position], factor: int = 1) -> tuple[Position, ...]:
    """Offsets moved by others, dim by dim."""
    return tuple(a.plus(b, factor) for a, b in zip(offsets, more, strict=True))
