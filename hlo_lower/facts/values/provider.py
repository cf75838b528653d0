"""Providers: what is known of sites, each fact found once, within a budget.

A provider takes the providers that it builds on when it is made: forms build on ranges, distinctness on both.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.values.budget import Budget

if TYPE_CHECKING:
    from hlo_lower.facts.ranges.index_facts import IndexAnalysis


Key = TypeVar("Key")
V = TypeVar("V")


class Memo(Generic[Key, V]):
    """What was found, by its key, under assumptions that are made and settled like brackets.

    An assumption opens a level and takes it away when it is settled. While something is found, the levels that it rests
    on are noted; it is kept at the innermost of them, and so is found again while that assumption holds and not after.
    What rests on none is kept for good. So nothing is found twice under the same assumptions.
    """

    def __init__(self) -> None:
        self._tables: list[dict[Key, tuple[V, int]]] = [{}]
        self._rests: list[int] = []  # for each search under way, the levels that it rests on so far, as bits

    @property
    def level(self) -> int:
        """The innermost assumption: how many are made, 0 for none."""
        return len(self._tables) - 1

    def get(self, key: Key) -> V | None:
        """The fact of a key, if there is one; what rests on it rests on the same levels."""
        for table in reversed(self._tables):
            known = table.get(key)
            if known is not None:
                self._add(known[1])
                return known[0]
        return None

    def begin(self) -> None:
        """Begin a search, to be ended by `keep` or `drop`."""
        self._rests.append(0)

    def keep(self, key: Key, found: V) -> None:
        """End a search, and keep what was found for as long as what it rests on is assumed."""
        rests = self._rests.pop()
        self._tables[rests.bit_length()][key] = (found, rests)
        self._add(rests)

    def drop(self) -> None:
        """End a search without keeping anything."""
        self._add(self._rests.pop())

    def note(self, level: int) -> None:
        """The search under way rests on an assumption."""
        self._add(1 << (level - 1) if level else 0)

    def assume(self) -> None:
        """Make an assumption: open a level."""
        self._tables.append({})

    def settle(self) -> None:
        """Settle the innermost assumption: what rests on it is forgotten, and no search rests on it any more."""
        self._tables.pop()
        if self._rests:
            self._rests[-1] &= (1 << self.level) - 1

    def _add(self, rests: int) -> None:
        if self._rests:
            self._rests[-1] |= rests


K = TypeVar("K", bound=Hashable)


class Provider(ABC, Generic[K, V]):
    """Facts of one kind.

    What was cut off by the budget answers the question but is no knowledge: it is not kept for others.

    Attributes:
      budget: the steps that are left.
      memo: what was found.
    """

    settles_circles: ClassVar[bool] = False
    """Whether it deals itself with what depends on itself; otherwise that is unknown."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.memo = Memo[Hashable, V]()
        self._pending = set[K]()

    def of(self, key: K) -> V:
        """The facts of a site, or of an element or elements of it."""
        known = self.memo.get(key)
        if known is None:
            known = self._elsewhere(key)
        if known is not None:
            return known
        if key in self._pending:
            return self._unknown(key, Code.NOT_KNOWN())
        if self.budget.is_too_deep:
            return self._unknown(key, Code.TOO_FAR(self.budget.deepest))
        cuts = self.budget.cuts
        if not self.budget.begin():
            return self._unknown(key, Code.OUT_OF_BUDGET())
        self.memo.begin()
        if not self.settles_circles:
            self._pending.add(key)
        found = self._compute(key)
        self._pending.discard(key)
        self.budget.end()
        if cuts == self.budget.cuts or not self.budget.is_asked:
            found = self._trim(found)
            self.memo.keep(key, found)
        else:
            self.memo.drop()
        return found

    def _elsewhere(self, key: K) -> V | None:
        """A fact that needs no computation, if there is one."""
        return None

    def _trim(self, found: V) -> V:
        """The fact as it is stored: coarser where the memory budget is spent."""
        return found

    @abstractmethod
    def _compute(self, key: K) -> V:
        """The fact of a key that has none yet; `of` stores it."""

    @abstractmethod
    def _unknown(self, key: K, why: Cause) -> V:
        """The fact that holds of every key; `why` no better one is known."""


Ranges: TypeAlias = "IndexAnalysis"
"""What gives intervals, as its rules see it."""
