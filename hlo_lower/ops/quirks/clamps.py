"""Clamps whose least number may be above the greatest one."""

from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.bounds import ends_of
from hlo_lower.ops.names import CLAMP
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module


def _may_cross(graph: Graph, node: Node) -> bool:
    """Whether a least number may be above the greatest one of its element."""
    low, _, high = node.operands
    if low == high:
        return False
    least, most = low.constant(), high.constant()
    if least is not None and most is not None:
        return bool((least > most).any())
    return not ends_of(graph, low)[1] <= ends_of(graph, high)[0]


V = "tensor<4xf32>"

CROSSING = Quirk(
    "clamp between ends that may cross",
    (CLAMP,),
    {"litert": "where the least number is above the greatest one it gives the former"},
    "its `minimum` of a `maximum`",
    module(f"%a: {V}, %x: {V}, %b: {V}", V, f"%r = stablehlo.clamp %a, %x, %b : {V}"),
    _may_cross,
    (Rules("op", ("clamp_to_minimum",)),),
)
