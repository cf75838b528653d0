"""Ops whose dims are axes or are taken whole: elementwise ops, reductions, sorts and top_k."""

from collections.abc import Sequence
from math import inf

from hlo_lower.base.element_types import type_range
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops.axes.contraction import is_summed
from hlo_lower.ops.axes.cut import AxisLink, Boundary
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import REDUCE, SORT
from hlo_lower.ops.spec import COMBINING, ELEMENTWISE, short


@subset_rules.axes(*sorted(ELEMENTWISE))
def elementwise(node: Node) -> Sequence[AxisLink] | Boundary:
    """Every dim is an axis of all operands and the result; a scalar (of select, of clamp) is taken whole.

    Right: element p of the result depends on the elements p of the operands alone.
    """
    shape = node.result().shape
    dims = range(len(shape))
    return [AxisLink(tuple(d if value.shape == shape else None for value in node.operands), (d,)) for d in dims]


@subset_rules.axes(SORT)
def sort(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the sorted one. Right: each line along that dim is sorted by itself."""
    count, rank = len(node.results), len(node.result().shape)
    along = rank - 1 if node.attribute("dimension") is None else node.integer("dimension") % rank
    return [AxisLink((d,) * count, (d,) * count) for d in range(rank) if d != along]


@subset_rules.axes("chlo.top_k")
def top_k(node: Node) -> Sequence[AxisLink] | Boundary:
    """All dims but the last, along which the largest are sought. Right: each line is searched by itself."""
    return [AxisLink((d,), (d, d)) for d in range(len(node.operand(0).shape) - 1)]


COMBINERS = short(COMBINING)
"""Ops by which pieces of a reduction may be combined."""


@subset_rules.axes(REDUCE)
def reduce(node: Node) -> Sequence[AxisLink] | Boundary:
    """Dims that are not reduced, for any region; reduced ones where one op combines and the initial value is neutral.

    Right: an element of the result is reduced from its own elements of the inputs. StableHLO leaves the order of a
    reduction open, and a neutral initial value may go into each piece and into the whole.
    """
    half = len(node.results)
    reduced = node.integers("dimensions")
    kept = [d for d in range(len(node.operand(0).shape)) if d not in reduced]
    initial = (None,) * half
    axes = [AxisLink((d,) * half + initial, (place,) * half) for place, d in enumerate(kept)]
    combiner = combiner_of(node)
    if combiner is not None and is_neutral(node.operand(1), combiner):
        axes += [AxisLink((d, None), (None,), combiner) for d in reduced]
    return axes


def combiner_of(node: Node) -> str | None:
    """The name of the elementwise op that a region of two scalars consists of; None where it is more."""
    op = only_op(node.blocks[0]) if len(node.results) == 1 else None
    name = "" if op is None else op.name.removeprefix("stablehlo.")
    element = node.result().element_type
    if name in ("add", "multiply") and not (is_summed(element) or element == "i1"):
        return None
    return name if name in COMBINERS else None


def is_one_op(block: Block) -> bool:
    """Whether a region is one associative operation of its arguments, in their order."""
    first, *rest = block.nodes
    is_one = first.name in COMBINING and len(rest) == 1 and rest[0].operands == first.results
    return is_one and first.operands == block.arguments


def is_neutral(start: Value, name: str) -> bool:
    """Whether an initial value is a constant that an op leaves alone: of a sum a zero of either sign, as after a start
    of 0.0 no zero shows."""
    given = start.constant()
    low, high = type_range(start.element_type) or (-inf, inf)
    wanted = {"multiply": 1, "maximum": low, "minimum": high, "and": -1 if low < 0 else high}.get(name, 0)
    return name in COMBINERS and given is not None and bool(given.reshape(-1)[0] == wanted)
