"""A softmax of open sizes as `linalg.softmax`, read in linalg; one of static sizes is a composite before (`lower.py`).

    %most = linalg.reduce { maximumf } %x, from -inf     %sum  = linalg.reduce { addf } %e, from 0
    %e    = linalg.map { exp } (%x - broadcast %most)    %r    = linalg.map { divf } %e, broadcast %sum
    ->
    %r    = linalg.softmax dimension(1) ins(%x)

Equal: MLIR decomposes that op into these ops, in this order. Its maximum leaves NaN out, of which all of a row is NaN
in either case.
"""

from math import inf

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.linalg.loops import replace_all

SOFTMAX = "linalg.softmax"


def name_open_softmax(graph: Graph) -> bool:
    """Write each softmax of open sizes as the op; whether there was one."""
    found = False
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name == "linalg.map"]:
            read = _softmax_of(node)
            if read is not None:
                x, dim = read
                init, attributes = node.operands[-1], {"dimension": mlir.i64_attribute(dim)}
                made = Builder.before(node).op(SOFTMAX, [x, init], [node.result().raw.type], attributes)
                replace_all(node.results, made.results)
                node.raw.erase()
                found = True
    return found


def _softmax_of(node: Node) -> tuple[Value, int] | None:
    """What a quotient is the softmax of, and along which dim."""
    quotient = _mapped(node.result(), "arith.divf")
    if quotient is None or node.result().is_static or node.result().element_type not in ("f32", "f64"):
        return None
    exponentials, sums = quotient
    summed, shifted = _spread_reduction(sums, "arith.addf", 0.0), _mapped(exponentials, "math.exp")
    difference = None if shifted is None else _mapped(shifted[0], "arith.subf")
    most = None if difference is None else _spread_reduction(difference[1], "arith.maximumf", -inf)
    if summed is None or difference is None or most is None:
        return None
    is_one = summed == (exponentials, most[1]) and most[0] == difference[0]
    return most if is_one else None


def _mapped(value: Value, name: str) -> tuple[Value, ...] | None:
    """What an op is computed of, element by element, by a `linalg.map` of it alone."""
    node = value.node
    if node is None or node.name != "linalg.map" or not _is_of(node, name, is_ordered=True):
        return None
    return tuple(node.operands[:-1])


def _spread_reduction(value: Value, name: str, start: float) -> tuple[Value, int] | None:
    """What is reduced along one dim, and repeated along it, and the dim."""
    spread = value.node
    reduced = None if spread is None or spread.name != "linalg.broadcast" else spread.operand(0).node
    if spread is None or reduced is None or reduced.name != "linalg.reduce" or not _is_of(reduced, name):
        return None
    dims, filled = reduced.integers("dimensions"), reduced.operand(1).node
    constant = None if filled is None or filled.name != "linalg.fill" else filled.operand(0).node
    number = None if constant is None or constant.name != "arith.constant" else constant.attribute("value")
    is_start = number is not None and mlir.float_of(number) == start
    is_spread = len(dims) == 1 and spread.integers("dimensions") == dims
    return (reduced.operand(0), dims[0]) if is_start and is_spread else None


def _is_of(node: Node, name: str, *, is_ordered: bool = False) -> bool:
    """Whether a body is one op of its arguments, of those that are read in their order."""
    [block] = node.blocks
    op, *rest = block.nodes
    count = len(node.operands) - is_ordered  # a map has an argument for what it writes, which none reads
    given = block.arguments[:count]
    is_given = tuple(op.operands) in ((given,) if is_ordered else (given, given[::-1]))
    return op.name == name and is_given and len(rest) == 1 and tuple(rest[0].operands) == tuple(op.results)
