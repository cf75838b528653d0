"""What a sort sorts by, which of its rows are read, and what its sizes ask for."""

from hlo_lower.sorting.canonical_sort import CanonicalSort, read_sort
from hlo_lower.sorting.sort_facts import SORT, SortFacts, SortStrategy, sort_strategies

__all__ = [
    "SORT",
    "CanonicalSort",
    "SortFacts",
    "SortStrategy",
    "read_sort",
    "sort_strategies",
]
