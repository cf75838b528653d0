"""Numbers that an op reads, computed as numbers: no tensors without dims, no clamp twice, no test of a clamp."""

from collections.abc import Iterator

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.loops import ELEMENTWISE, READ, index_constant

# --- what is extracted from a tensor without dims ---
#
# jaxlib's pass computes a start of a slice in tensors without dims, as StableHLO does:
#
#     %t = tensor.collapse_shape %index [] : tensor<1xi64> into tensor<i64>
#     %m = linalg.map { arith.maxsi } ins(%t, %zero) ...; %s = tensor.extract %m[]
#     ->
#     %e = tensor.extract %index[%c0]; %s = arith.maxsi %e, %zero
#
# Equal: the region of an elementwise op on one element is applied to that element. What no extract reads stays a
# tensor: a device computes a loss where it lies.


EXTRACT = "tensor.extract"


def read_scalars(graph: Graph) -> bool:
    """Compute what is extracted from tensors without dims as scalars; whether anything was."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name == EXTRACT else None)
    known: dict[Value, Value | None] = {}
    with mlir.active(graph.context):
        changed = False
        for node in found:
            scalar = _scalar(node.operand(0), known) if len(node.operands) == 1 else None
            if scalar is not None:
                node.result().raw.replace_all_uses_with(scalar.raw)
                changed = True
    return changed


def _scalar(tensor: Value, known: dict[Value, Value | None]) -> Value | None:
    """The one element of a tensor, built before what makes the tensor; None where it is what a tensor holds."""
    if tensor not in known:
        node = tensor.node
        known[tensor] = None if node is None else _element(tensor, node, known)
    return known[tensor]


def _element(tensor: Value, node: Node, known: dict[Value, Value | None]) -> Value | None:
    if tensor.shape != ():
        return None
    build = Builder.before(node)
    if node.name == "tensor.collapse_shape":
        source, first = node.operand(0), _first_of(node.operand(0))
        return None if first is None else _extracted(build, *first) if source.shape else None
    if node.name not in ELEMENTWISE or any(operand.shape != () for operand in node.operands):
        return None
    [block] = node.blocks
    given = [_scalar(operand, known) or _extracted(build, operand, ()) for operand in node.operands]
    return build.inline_before(node, block, given[: len(block.arguments)])[tensor.number]


def _extracted(build: Builder, tensor: Value, place: tuple[int, ...]) -> Value:
    indices = [index_constant(build, number) for number in place]
    return build.op(EXTRACT, [tensor, *indices], [mlir.tensor_element(tensor.raw.type)]).result()


def _first_of(tensor: Value) -> tuple[Value, tuple[int, ...]] | None:
    """Where the one element of a tensor stands: in itself, or in what it is a slice of."""
    if any(size != 1 for size in tensor.shape):
        return None
    node = tensor.node
    if node is None or node.name != READ or len(node.operands) > 1:
        return tensor, (0,) * len(tensor.shape)
    return node.operand(0), tuple(node.integers("static_offsets"))


# --- clamps ---
#
# A start is clamped where it is made and again where a slice is read. A window that is dropped out of bounds is guarded
# by a test of the clamp, and written where it holds:
#
#     %low = arith.maxsi %i, %c0; %at = arith.minsi %low, %c7; %inside = arith.cmpi eq, %i, %at
#     %r = scf.if %inside { %k = arith.index_cast %at; %l = arith.maxsi %k, 0; %p = arith.minsi %l, 7; ... [%p, 0] ... }
#     ->
#     %inside = arith.cmpi ule, %i, %c7
#     %r = scf.if %inside { %k = arith.index_cast %i; ... [%k, 0] ... }
#
# Equal: a number between bounds is its own clamp, and is so just where it lies between them; a negative number is, read
# without its sign, greater than any limit. Where the test holds the clamp is the number.


CASTS = frozenset({"arith.index_cast", "arith.index_castui"})
GREATER, LESSER = ("arith.maxsi", "arith.maxui"), ("arith.minsi", "arith.minui")
EQUAL, AT_MOST = 0, 7
"""Predicates of `arith.cmpi`: eq, and ule."""


def drop_clamps(graph: Graph) -> bool:
    """Take clamps away that change nothing, and test what is clamped without them; whether there were any."""
    found: list[Node] = []
    graph.walk(lambda node: found.append(node) if node.name.startswith(("arith.", "scf.if")) else None)
    with mlir.active(graph.context):
        changed = [_drop(node) for node in found]
        changed += [_test(node) for node in found]
        changed += [_under(node) for node in found if node.name == "scf.if"]
    return any(changed)


def _drop(node: Node) -> bool:
    """A maximum or minimum of which one side is known to be it."""
    if node.name not in GREATER + LESSER:
        return False
    value, bound = node.operands
    limit, (low, high) = _number(bound), _between(value)
    if limit is None or limit < 0 or low < 0 or (high > limit if node.name in LESSER else low < limit):
        return False
    node.result().raw.replace_all_uses_with(value.raw)
    return True


def _test(node: Node) -> bool:
    """A comparison of a number with its clamp between 0 and a limit."""
    if node.name != "arith.cmpi" or node.integer("predicate") != EQUAL:
        return False
    for value, other in (node.operands, node.operands[::-1]):
        limit = _clamped(other, value)
        if limit is not None:
            attributes = {"predicate": mlir.parse_attribute(f"{AT_MOST} : i64")}
            new = Builder.before(node).op("arith.cmpi", [value, limit], [node.result().raw.type], attributes)
            node.result().raw.replace_all_uses_with(new.result().raw)
            return True
    return False


def _clamped(clamp: Value, value: Value) -> Value | None:
    """The limit where a value is another one's clamp between 0 and that; both bounds are no negative numbers."""
    least = clamp.node
    if least is None or least.name not in LESSER:
        return None
    inner, limit = least.operands
    signed = least.name == LESSER[0]
    if (number := _number(limit)) is None or number < 0:
        return None
    if not signed and inner == value:
        return limit  # without a sign no number is below 0
    greatest = inner.node
    if greatest is None or greatest.name != GREATER[not signed] or greatest.operand(0) != value:
        return None
    return limit if _number(greatest.operand(1)) == 0 else None


def _under(node: Node) -> bool:
    """What is clamped, where an `scf.if` is entered for numbers between the bounds alone."""
    changed = False
    for test in _conjuncts(node.operand(0)):
        if test.name != "arith.cmpi" or test.integer("predicate") != AT_MOST:
            continue
        value, limit = test.operands
        for place, number, clamp in list(_reads(node.blocks[0])):
            found = _clamped(clamp, value)
            if found is not None and _number(found) == _number(limit):
                place.raw.operands[number] = value.raw
                changed = True
    return changed


def _conjuncts(condition: Value) -> Iterator[Node]:
    node = condition.node
    if node is not None and node.name == "arith.andi":
        for operand in node.operands:
            yield from _conjuncts(operand)
    elif node is not None:
        yield node


def _reads(block: Block) -> Iterator[tuple[Node, int, Value]]:
    """Each operand that is read in a block and below."""
    for raw in (raw for top in block.nodes for raw in mlir.walked(top.raw)):
        node = Node(raw)
        for number, operand in enumerate(node.operands):
            yield node, number, operand


def _number(value: Value) -> int | None:
    """The number of an integer or index constant, with its sign."""
    node = value.node
    attribute = None if node is None or node.name != "arith.constant" or value.is_tensor else node.attribute("value")
    is_integer = attribute is not None and element_type(str(value.raw.type)).integer_range is not None
    return mlir.integer_of(attribute) if attribute is not None and is_integer else None


def _between(value: Value) -> tuple[float, float]:
    """Between which numbers a value lies by the clamps that it comes from, read with a sign; unknown is no bound."""
    nowhere = (float("-inf"), float("inf"))
    node, number = value.node, _number(value)
    if number is not None:
        return number, number
    if node is None:
        return nowhere
    if node.name in CASTS and str(node.result().raw.type) == "index":
        low, high = _between(node.operand(0))
        return (low, high) if low >= 0 else nowhere
    if node.name not in GREATER + LESSER or (limit := _number(node.operand(1))) is None:
        return nowhere
    low, high = _between(node.operand(0))
    if node.name == GREATER[0]:
        return max(low, limit), max(high, limit)
    if node.name == LESSER[0]:
        return min(low, limit), min(high, limit)
    return (0, limit) if node.name == LESSER[1] and limit >= 0 else nowhere
