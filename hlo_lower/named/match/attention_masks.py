"""Masks of attention: which value it is, how it is applied, and whether it is the causal one, of a window or not.

    boolean    select(seen, scores, -inf)     or a number so low that its exponential is 0
    additive   scores + mask
    causal     seen(q, k) = k <= q, or the mask is 0 there and as low elsewhere; of a window also k > q - window

A mask that is made of iotas and constants is computed, at every place, and compared (`pointwise`); the same one in each
layer is computed once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlo_lower.named.match.axis_atoms import Axis, View
from hlo_lower.named.match.pointwise import dims_looked_at, value_at
from hlo_lower.named.match.terms import Term

LOW = -1e4
"""What hides at least: its exponential is 0 in every float type."""

AT_ONCE = 1 << 22
"""Most places of a mask that are computed together."""

MOST = 1 << 30
"""Most places of a mask that is computed at all."""


@dataclass(frozen=True)
class Mask:
    """A mask.

    Attributes:
      kind: "boolean" or "additive".
      view: the predicate, or what is added, with the atoms of the scores.
      hides: of a predicate, whether it is true where a position is hidden.
      is_infinite: whether what is hidden is -inf, which no scale changes.
    """

    kind: str
    view: View
    hides: bool = False
    is_infinite: bool = False

    @cached_property
    def operand(self) -> View:
        """The mask beneath layout, as far as no other attention takes what the layout makes of it."""
        at, below = self.view, self.view.beneath()
        while below is not None and not at.term.has_several_users:
            at, below = below, below.beneath()
        return at

    @property
    def term(self) -> Term:
        """The same as the value that it is."""
        return self.operand.term


def mask_of(scores: View) -> tuple[Mask, View] | None:
    """A mask that is applied, and the scores beneath it."""
    term = scores.term
    if term.op == "select":
        predicate, first, second = term.operands
        for low, other, hides in ((second, first, False), (first, second, True)):
            number = low.scalar
            if number is not None and float(number) <= LOW:
                at = scores.on(predicate) if predicate.shape else View(predicate, ())
                return Mask("boolean", at, hides, bool(number == -np.inf)), scores.on(other)
    return None


def added_masks(scores: View, is_score: "object") -> tuple[Mask, View] | None:
    """What is added to the scores, and the scores; which of the two they are is asked."""
    assert callable(is_score)
    if scores.term.op != "add":
        return None
    first, second = scores.term.operands
    for value, other in ((first, second), (second, first)):
        if is_score(scores.on(value)):
            return Mask("additive", scores.on(other)), scores.on(value)
    return None


@dataclass(frozen=True)
class Causal:
    """A causal mask: how many positions back are seen, 0 for all, and the atoms that are counted as positions."""

    window: int
    positions: Axis


def causal_of(mask: Mask, rows: Axis, keys: Axis) -> Causal | None:
    """A mask as the causal one, of a window or not; None of other masks.

    Args:
      mask: the mask.
      rows: the atoms of what only queries have: positions, and groups of heads.
      keys: the atoms of the keys' positions.
    """
    view = mask.view.root()
    looked_at = dims_looked_at(view.term)
    if looked_at is None:
        return None
    row_dims = [d for d in sorted(looked_at) if set(view.axis(d)) and set(view.axis(d)) <= set(rows)]
    key_dims = [d for d in sorted(looked_at) if set(view.axis(d)) and set(view.axis(d)) <= set(keys)]
    if len(row_dims) != 1 or len(key_dims) != 1 or len(looked_at) != 2 or view.axis(key_dims[0]) != keys:
        return None
    known: list[tuple[Term, str, int | None]] = view.term.terms.found.setdefault(
        ("masks", row_dims[0], key_dims[0]), []
    )
    kind = f"{mask.kind} {mask.hides}"
    windows = [window for other, its, window in known if its == kind and other.is_same(view.term)]
    if not windows:
        windows = [_pattern(mask, view.term, row_dims[0], key_dims[0])]
        known.append((view.term, kind, windows[0]))
    return None if windows[0] is None else Causal(windows[0], view.axis(row_dims[0]))


def _pattern(mask: Mask, term: Term, row_dim: int, key_dim: int) -> int | None:
    """The window of a causal mask, 0 for all; None where one place is another."""
    rows, keys = term.shape[row_dim], term.shape[key_dim]
    if rows * keys > MOST:
        return None
    window: int | None = None
    step = max(1, AT_ONCE // keys)
    for first in reversed(range(0, rows, step)):  # the last rows tell the window
        q, k = np.arange(first, min(first + step, rows))[:, None], np.arange(keys)[None, :]
        places = [np.zeros((1, 1), np.int64)] * len(term.shape)
        places[row_dim], places[key_dim] = q, k
        found = value_at(term, tuple(places))
        seen = None if found is None else _seen(mask, np.broadcast_to(found, (len(q), keys)))
        if seen is None:
            return None
        if window is None:
            window = _window(rows, keys, seen[-1])
            if window is None:
                return None
        expected = (k <= q) & (k > q - window) if window else k <= q
        if not np.array_equal(seen, np.broadcast_to(expected, seen.shape)):
            return None
    return window


def _seen(mask: Mask, found: "np.ndarray") -> "np.ndarray | None":  # pyright: ignore[reportMissingTypeArgument]
    if mask.kind == "boolean":
        return ~found if mask.hides else found
    values = found.astype(np.float64)
    return values == 0 if bool(np.all((values == 0) | (values <= LOW))) else None


def _window(rows: int, keys: int, last: "np.ndarray") -> int | None:  # pyright: ignore[reportMissingTypeArgument]
    """How many positions the last query sees where it does not see all up to itself: the window; else 0."""
    count = int(last.sum())
    return 0 if count == min(rows, keys) else count or None
