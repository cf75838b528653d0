"""Masks of attention: which value it is, how it is applied, and whether it is the causal one, of a window or not.

    boolean    select(seen, scores, -inf)     or a number so low that its exponential is 0
    additive   scores + mask
    causal     seen(q, k) = k <= q, or the mask is 0 there and as low elsewhere; of a window also k > q - window

A mask that is made of iotas and constants is looked at place by place (`pointwise`): all places of a small one, of a
large one a band about the diagonal, the edges and a grid. That tells apart whatever compares positions with each other
and with numbers; a large constant that is written out is looked at as a whole.
"""

from dataclasses import dataclass

import numpy as np

from hlo_lower.named.arithmetic import uncast
from hlo_lower.named.axis_atoms import Axis, View
from hlo_lower.named.pointwise import dims_looked_at, value_at
from hlo_lower.named.terms import Term

LOW = -1e4
"""What hides at least: its exponential is 0 in every float type."""

ALL = 1 << 18
"""Most places of a mask that are all looked at."""


@dataclass(frozen=True)
class Mask:
    """A mask.

    Attributes:
      kind: "boolean" or "additive".
      view: the predicate, or what is added, with the atoms of the scores.
      hides: of a predicate, whether it is true where a position is hidden.
    """

    kind: str
    view: View
    hides: bool = False

    @property
    def term(self) -> Term:
        """The mask beneath layout."""
        return self.view.root(casts=False).term


def mask_of(scores: View) -> tuple[Mask, View] | None:
    """A mask that is applied, and the scores beneath it."""
    term = scores.term
    if term.op == "select":
        predicate, first, second = term.operands
        for low, other, hides in ((second, first, False), (first, second, True)):
            number = low.scalar
            if number is not None and float(number) <= LOW:
                return Mask(
                    "boolean", scores.on(predicate) if predicate.shape else View(predicate, ()), hides
                ), scores.on(other)
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


def causal_window(mask: Mask, rows: Axis, keys: Axis) -> int | None:
    """0 where a mask is the causal one, the window where it has one; None of other masks.

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
    q, k = _looked_at(view.term.shape[row_dims[0]], view.term.shape[key_dims[0]], view.term)
    places = [np.zeros_like(q)] * len(view.term.shape)
    places[row_dims[0]], places[key_dims[0]] = q, k
    found = value_at(view.term, tuple(places))
    if found is None:
        return None
    seen = _seen(mask, found)
    if seen is None:
        return None
    causal = k <= q
    if np.array_equal(seen, causal):
        return 0
    window = _window(q, k, seen)
    return window if window is not None and np.array_equal(seen, causal & (k > q - window)) else None


def _seen(mask: Mask, found: "np.ndarray") -> "np.ndarray | None":  # pyright: ignore[reportMissingTypeArgument]
    if mask.kind == "boolean":
        return ~found if mask.hides else found
    values = found.astype(np.float64)
    return values == 0 if bool(np.all((values == 0) | (values <= LOW))) else None


def _window(q: "np.ndarray", k: "np.ndarray", seen: "np.ndarray") -> int | None:  # pyright: ignore[reportMissingTypeArgument]
    """How many positions the last query sees."""
    last = seen & (q == q.max())
    return int(q.max() - k[last].min() + 1) if last.any() else None


def _looked_at(rows: int, keys: int, term: Term) -> "tuple[np.ndarray, np.ndarray]":  # pyright: ignore[reportMissingTypeArgument]
    """The places of a mask that are looked at."""
    if rows * keys <= ALL or uncast(term).op == "constant":
        q, k = np.divmod(np.arange(rows * keys), keys)
        return q, k
    band = np.arange(-3, 4)
    diagonal = np.arange(rows)[:, None] + band
    steps = np.unique(np.concatenate([np.arange(0, keys, max(1, keys // 64)), [0, 1, keys - 2, keys - 1]]))
    last = np.arange(keys)
    q = np.concatenate(
        [np.repeat(np.arange(rows), len(band)), np.repeat(np.arange(rows), len(steps)), np.full(keys, rows - 1)]
    )
    k = np.concatenate([diagonal.ravel(), np.tile(steps, rows), last])
    # The far edge of a window stands where the last row's does, moved along the diagonal.
    edges = np.arange(rows)[:, None] - (rows - 1) + last[None, :: max(1, keys // 512)]
    q, k = np.concatenate([q, np.repeat(np.arange(rows), edges.shape[1])]), np.concatenate([k, edges.ravel()])
    inside = (k >= 0) & (k < keys)
    return q[inside], k[inside]
