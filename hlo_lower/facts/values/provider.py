"""Providers: what is known of sites, each fact found once, within a budget.

A provider takes the providers that it builds on when it is made: forms build on ranges, distinctness on both.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.values.budget import Budget
from hlo_lower.facts.values.memo import Memo

if TYPE_CHECKING:
    from hlo_lower.facts.ranges.index_facts import IndexAnalysis

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


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
        """What is known of a site, or of an element or elements of it."""
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
        found = self._found(key)
        self._pending.discard(key)
        self.budget.end()
        if cuts == self.budget.cuts or not self.budget.is_asked:
            found = self._kept(found)
            self.memo.keep(key, found)
        else:
            self.memo.drop()
        return found

    def _elsewhere(self, key: K) -> V | None:
        """What is known without looking, if it is."""
        return None

    def _kept(self, found: V) -> V:
        """What is kept of it within the budget of memory."""
        return found

    @abstractmethod
    def _found(self, key: K) -> V:
        """What is found by looking."""

    @abstractmethod
    def _unknown(self, key: K, why: Cause) -> V:
        """What is true of everything of this kind."""


Ranges: TypeAlias = "IndexAnalysis"
"""What gives intervals, as its rules see it."""
