"""Reductions: dims that stay are axes, dims that are reduced are axes whose pieces are combined."""

from collections.abc import Sequence
from math import inf

from hlo_lower.base.element_types import type_range
from hlo_lower.ir.regions import only_op
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.axis_link import AxisLink, Boundary
from hlo_lower.ops.axes.contraction import is_summed
from hlo_lower.ops.axes.rules import subset_rules
from hlo_lower.ops.names import REDUCE
from hlo_lower.ops.spec import COMBINING, short

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


def is_neutral(start: Value, name: str) -> bool:
    """Whether an initial value is a constant that an op leaves alone: of a sum a zero of either sign, as after a start
    of 0.0 no zero shows."""
    given = start.constant()
    low, high = type_range(start.element_type) or (-inf, inf)
    wanted = {"multiply": 1, "maximum": low, "minimum": high, "and": -1 if low < 0 else high}.get(name, 0)
    return name in COMBINERS and given is not None and bool(given.reshape(-1)[0] == wanted)
