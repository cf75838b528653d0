"""Sines, cosines and tangents of numbers that are not known to be small."""

from collections.abc import Callable
from math import inf, isfinite, prod

import numpy as np

from hlo_lower.base.element_types import HALF_FLOATS
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.quirks.floats import FORM, MOVES, compared_with
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module
from hlo_lower.ops.spec import OPS, WITH_BODY

SMALL = 8.0
"""Below it a consumer that reduces an angle in f32 is within 3e-7, as far as others are in the first quadrant."""

LARGEST = float(np.finfo(np.float32).max)
"""The greatest f32."""

MOST_STEPS = 20
"""Ops between a number and what it is computed from that are looked at."""

COMBINED: dict[str, Callable[[list[float]], float]] = {
    names.ADD: sum,
    names.SUBTRACT: sum,
    names.MULTIPLY: prod,
    names.MAXIMUM: max,
    names.MINIMUM: max,
    names.CONCATENATE: max,
}


def largest(value: Value, steps: int = MOST_STEPS) -> float:
    """How large the finite numbers of a value may be, as far as the ops that make it say; inf where they do not."""
    node, most = value.node, _largest_of(value)
    if node is None or steps == 0 or node.has_regions:
        return most
    return min(most, _largest_made(node, steps - 1))


def _largest_of(value: Value) -> float:
    """The largest number of an integer type."""
    return 2.0**value.element.bits if value.is_tensor and value.element.is_integer else inf


def _largest_made(node: Node, steps: int) -> float:
    """What an op says of its result, which is no sum or product that wraps around."""
    numbers = node.constant() if node.name == names.CONSTANT else None
    if numbers is not None:
        return float(np.max(np.abs(numbers.astype(np.float64)), initial=0.0)) if numbers.dtype.kind in "iuf" else inf
    if node.name == names.IOTA and node.is_static:
        return float(max(node.result().static_shape))
    spec = OPS.get(node.name)
    if spec is not None and spec.image is not None and isfinite(most := max(map(abs, spec.image))):
        return most
    if node.name in (*MOVES, names.ABS, names.NEGATE, names.CONVERT):
        return largest(node.operand(0), steps)
    if node.name == names.SELECT:
        predicate, on_true, on_false = node.operands
        return max(largest(on_true, steps), _largest_beside(predicate, on_false, steps))
    if node.name in COMBINED:
        found = COMBINED[node.name]([largest(operand, steps) for operand in node.operands])
        return found if found < _largest_of(node.result()) / 2 else inf
    return inf


def _largest_beside(predicate: Value, value: Value, steps: int) -> float:
    """How large a finite value may be where a predicate does not hold, which may be that it is above a constant and
    finite."""
    node = predicate.node
    is_both = node is not None and node.name == names.AND and _limit(node.operand(1), value, "LE") == LARGEST
    limit = _limit(node.operand(0) if node is not None and is_both else predicate, value, "GT")
    return largest(value, steps) if limit is None else limit


def _limit(predicate: Value, value: Value, direction: str) -> float | None:
    """The constant with which a value is compared so, if it is."""
    limit = compared_with(predicate, value, direction)
    return float(np.max(limit)) if limit is not None and limit.size else None


def _may_be_large(_graph: Graph, node: Node) -> bool:
    """Whether an angle may be, outside of what reductions and the like apply to numbers, where no table is read."""
    if node.parent is not None and node.parent.name in WITH_BODY:
        return False
    angle = node.operand(0)
    is_rounded_once = angle.element_type != "f16" or node.name in (names.SINE, names.COSINE)  # XLA divides in f16
    return angle.element_type in ("f32", *HALF_FLOATS) and is_rounded_once and largest(angle) > SMALL


V = "tensor<4xf32>"

LARGE_ANGLE = Quirk(
    "sine, cosine or tangent of large numbers",
    (names.SINE, names.COSINE, names.TAN, "chlo.tan"),
    {
        "iree": "off by 3e-5 at 10^3, 0.03 at 10^6, and beyond 10^8 no number between -1 and 1",
        "litert": "off by 2e-6 at 10^6, and beyond 10^8 no number between -1 and 1",
    },
    "that of what 2/pi, exact to 2^-61, leaves of the number, by quadrant",
    module(
        f"%x: {V}",
        V,
        f"%c = stablehlo.constant dense<1.0e+20> : {V}",
        f"%a = stablehlo.add %x, %c : {V}",
        f"%r = stablehlo.cosine %a : {V}",
    ),
    _may_be_large,
    (Rules(FORM, ("angle_to_quadrant",)),),
)
