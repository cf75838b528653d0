"""Rows: a reduction seen from the value to which its result is broadcast again.

The maximum in a softmax, the mean in a norm: `reduce`, then layout, then an elementwise op with the value that was
reduced. `reduction_of` follows the layout up to the reduction. `rows` gives the atoms of the outer value that it
reduces, if its operand is that value, position by position, but for what is reduced.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hlo_lower.named.match.axis_atoms import Atom, Axis, View, fresh, leaves
from hlo_lower.named.match.terms import Term

_NEUTRAL = {"add": 0.0, "maximum": -np.inf, "minimum": np.inf, "or": 0, "and": 1}
"""What each combiner leaves alone."""


@dataclass(frozen=True)
class Reduced:
    """A reduction."""

    result: View  # what it gives, with the atoms of where it is used
    operand: View  # what it reduces, with these and with new atoms along the dims that are reduced
    new: Axis  # the new atoms


def combiner_of(term: Term, *, from_lowest: bool = False) -> str:
    """The op by which a `reduce` of one value combines, from what it leaves alone; "" of others. `from_lowest`: a
    maximum from the lowest finite number counts as well, which is another one where all elements are -inf."""
    raw = term.node.raw
    if len(raw.results) != 1:
        return ""
    operations = list(raw.regions[0].blocks[0].operations)
    if len(operations) != 2 or len(operations[0].operation.operands) != 2:
        return ""
    name = operations[0].operation.name.removeprefix("stablehlo.")
    neutral = _NEUTRAL.get(name)
    if neutral is None:
        return ""
    is_neutral = term.operands[1].is_number(neutral) or (from_lowest and name == "maximum" and _is_lowest(term))
    return name if is_neutral else ""


def _is_lowest(reduction: Term) -> bool:
    """Whether a reduction begins with the lowest finite number of its type."""
    number = reduction.operands[1].scalar
    return number is not None and bool(
        number == np.nextafter(np.array(-np.inf, number.dtype), np.array(0, number.dtype))
    )


def reduction_of(view: View, combiner: str, *, from_lowest: bool = False) -> Reduced | None:
    """The reduction that gives a value, beneath layout and conversions. `from_lowest`: see `combiner_of`."""
    root = view.root()
    if root.term.op != "reduce" or combiner_of(root.term, from_lowest=from_lowest) != combiner:
        return None
    return _open_reduction(root)


def _open_reduction(root: View) -> Reduced:
    dims = root.term.integers("dimensions")
    operand, kept, new = root.term.operands[0], iter(root.axes), list[Atom]()
    axes: list[Axis] = []
    for dim, size in enumerate(operand.shape):
        if dim in dims:
            [axis] = fresh([size])
            new += axis
            axes.append(axis)
        else:
            axes.append(next(kept))
    return Reduced(root, View(operand, tuple(axes)), tuple(new))


def rows(outer: View, found: Reduced) -> Axis | None:
    """The atoms of the outer value over which a reduction of it goes; None where it is of another value, or of others.

    The operand is followed up to the outer value itself; conversions between floats are looked through on both sides.
    """
    top = outer.root()
    for candidate in (outer, top):
        for inner in (found.operand.root(until=candidate.term), found.operand):
            if inner.term.is_same(candidate.term):
                return _over(candidate, inner, found.new)
    return None


def _over(outer: View, inner: View, new: Iterable[Atom]) -> Axis | None:
    """The outer atoms in the place of which new ones stand, where all others are the same."""
    over: list[Atom] = []
    for dim in range(len(outer.axes)):
        mine, its = list(reversed(outer.axis(dim))), list(reversed(inner.axis(dim)))
        while mine and its:
            a, b = mine.pop(), its.pop()
            if a is b:
                continue
            if b not in leaves(new):
                return None
            if a.extent > b.extent and a.extent % b.extent == 0:
                a.split(a.extent // b.extent)
                over.append(a.parts[0])
                mine.append(a.parts[1])
            elif b.extent > a.extent and b.extent % a.extent == 0:
                b.split(b.extent // a.extent)
                over.append(a)
                its.append(b.parts[1])
            elif a.extent == b.extent:
                over.append(a)
            else:
                return None
        if mine or its:
            return None
    return tuple(over)


def dims_of(view: View, atoms: Iterable[Atom]) -> tuple[int, ...] | None:
    """The dims of a value that consist of these atoms; None where one does in part.

    Of a value with no such atoms that are longer than 1, the last dim: a softmax over one element.
    """
    wanted = set(leaves(atoms))
    dims: list[int] = []
    for dim in range(len(view.axes)):
        axis = set(view.axis(dim))
        if axis & wanted:
            if not axis <= wanted:
                return None
            dims.append(dim)
    return tuple(dims)


def axes_attribute(view: View, found: Reduced, atoms: Axis) -> tuple[int, ...] | None:
    """The dims that are reduced, as an attribute: those of the reduction where it is of the value itself."""
    if found.operand.term.shape == view.term.shape and dims_of(found.operand, found.new) is not None:
        return tuple(found.result.term.integers("dimensions"))
    return dims_of(view, atoms)
