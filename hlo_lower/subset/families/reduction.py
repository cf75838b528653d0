"""Reductions: dims that stay are axes, dims that are reduced are axes whose pieces are combined."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo_lower.graph import Node
from hlo_lower.subset.axis_link import AxisLink, Boundary
from hlo_lower.subset.families.contraction import is_summed
from hlo_lower.subset.rules import subset_rules

NEUTRAL = {"add": 0, "multiply": 1, "or": 0, "and": -1, "xor": 0}
"""What each combiner leaves alone, as an integer; of i1, -1 is true."""


@subset_rules.axes("stablehlo.reduce")
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
    if combiner is not None and is_neutral(node, combiner):
        axes += [AxisLink((d, None), (None,), combiner) for d in reduced]
    return axes


def combiner_of(node: Node) -> str | None:
    """The name of the elementwise op that a region of two scalars consists of; None where it is more."""
    if len(node.results) != 1:
        return None
    *nodes, last = node.blocks[0].nodes
    if len(nodes) != 1 or last.operands != nodes[0].results:
        return None
    name = nodes[0].name.removeprefix("stablehlo.")
    if set(nodes[0].operands) != set(node.blocks[0].arguments):
        return None
    if name in ("add", "multiply") and not (is_summed(node.result().element_type) or _is_i1(node)):
        return None
    return name if name in (*NEUTRAL, "maximum", "minimum") else None


def _is_i1(node: Node) -> bool:
    return node.result().element_type == "i1"


def is_neutral(node: Node, combiner: str) -> bool:
    """Whether the initial value is a constant that the combiner leaves alone."""
    producer = node.operand(1).node
    value = producer.constant() if producer is not None and producer.name == "stablehlo.constant" else None
    if value is None:
        return False
    if combiner in NEUTRAL:
        expected = np.array(NEUTRAL[combiner]).astype(value.dtype)
        if value.dtype == np.bool_:
            expected = np.array(NEUTRAL[combiner] != 0)
        return bool(value == expected)
    return bool(value == _extreme(value.dtype, least=combiner == "maximum"))


def _extreme(dtype: "np.dtype[Any]", *, least: bool) -> object:
    """The least or greatest value of a type, infinite where there is one."""
    if dtype == np.bool_:
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    return -np.inf if least else np.inf
