"""Sines, cosines and tangents of numbers that are not known to be small."""

import numpy as np

from hlo_lower.base.element_types import HALF_FLOATS
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops import names
from hlo_lower.ops.bounds import largest_of
from hlo_lower.ops.quirks.floats import FORM
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module
from hlo_lower.ops.spec import WITH_BODY

SMALL = 8.0
"""Below it a consumer that reduces an angle in f32 is within 3e-7, as far as others are in the first quadrant."""

LARGEST = float(np.finfo(np.float32).max)
"""The greatest f32."""


def _may_be_large(graph: Graph, node: Node) -> bool:
    """Whether an angle may be, outside of what reductions and the like apply to numbers, where no table is read."""
    if node.parent is not None and node.parent.name in WITH_BODY:
        return False
    angle = node.operand(0)
    is_rounded_once = angle.element_type != "f16" or node.name in (names.SINE, names.COSINE)  # XLA divides in f16
    return angle.element_type in ("f32", *HALF_FLOATS) and is_rounded_once and largest_of(graph, angle) > SMALL


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
