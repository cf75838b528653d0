"""The forms that a scatter of many windows can take, by the size class that each is for."""

from enum import Enum


class Strategy(Enum):
    """Which of several right forms a scatter takes; `strategy_costs` says which are, and what each costs.

    FEW_WINDOWS: so few windows that each gets ops of its own. SHORT_AXIS: one row per batch coordinate, found by a
    compare over an axis so short that a pass over it costs no more. STRIDED: constant rows at an even distance above 1.
    MASK: every update is the same, so that only where they land counts. INVERSION: each row looks up the last update
    that is for it, by comparing with all; SORTED_INVERSION: by a binary search in the sorted row numbers. REDUCTION:
    each row combines the updates that are for it, by comparing with all; DOT: as a matrix product; SORTED_REDUCTION:
    in runs of the sorted updates. ROUNDS: each row takes its next update, all rows at once, as often as the row with
    most has one. PERMUTATION: each row is written once, so that sorting the updates puts them there.
    OWN_SCATTER: the scatter of the consumer, in a form that its kernel is right for. MANY: one window after the other.
    """

    FEW_WINDOWS = "few_windows"
    SHORT_AXIS = "short_axis"
    STRIDED = "strided"
    MASK = "mask"
    INVERSION = "inversion"
    SORTED_INVERSION = "sorted_inversion"
    REDUCTION = "reduction"
    DOT = "dot"
    SORTED_REDUCTION = "sorted_reduction"
    ROUNDS = "rounds"
    PERMUTATION = "permutation"
    OWN_SCATTER = "own_scatter"
    MANY = "many"
