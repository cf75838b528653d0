"""Starts of windows as terms: for each place at which a window could start, whether it does."""

from hlo_lower.verify.proof.elements import ProofType
from hlo_lower.verify.proof.terms import Term, at_most, equal


def clamped_starts(start: Term, limit: int, element: ProofType) -> list[Term]:
    """For 0, 1, ..., limit whether a start, brought into [0, limit], is there: exactly one of them holds.

    Args:
      start: an integer, read as its type says.
      limit: the last place, at least 0; it may be beyond the type.
      element: the type.
    """
    if limit == 0:
        return [True]
    inner = [equal(start, k, element) for k in range(1, limit)]
    return [at_most(start, 0, element), *inner, _reaches(start, limit, element)]


def _reaches(start: Term, limit: int, element: ProofType) -> Term:
    return at_most(limit, start, element) if limit <= element.declared.most else False


def starts_at(start: Term | None, place: int, element: ProofType) -> Term:
    """Whether a start is a place, negative ones included; a dim without a start starts at 0."""
    return place == 0 if start is None else equal(start, place, element)
