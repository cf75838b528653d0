"""Numbers that an op reads, computed as numbers: no tensors without dims, no clamp twice, no test of a clamp."""

from collections.abc import Iterator
from typing import TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.linalg.loops import READ, constant_number, index_constant
from hlo_lower.lowering.linalg.unit_dims import COLLAPSE, EXPAND
from hlo_lower.lowering.scatter.assumed import ALONG, ASSUMED, is_assumed
from hlo_lower.ops.names import CUSTOM_CALL

# --- elements that are read ---
#
# jaxlib's pass computes a start of a slice in tensors of one element, as StableHLO does:
#
#     %t = tensor.collapse_shape %index [] : tensor<1xi64> into tensor<i64>
#     %m = linalg.map { arith.maxsi } ins(%t, %zero) ...; %s = tensor.extract %m[]
#     ->
#     %e = tensor.extract %index[%c0]; %s = arith.maxsi %e, %zero
#
# Equal: the region of an elementwise op is applied to each element alone, and `linalg.index` in it is the element's
# place. What no extract reads stays a tensor: a device computes a loss where it lies.


EXTRACT, OWN_PLACE = "tensor.extract", "linalg.index"
ELEMENTWISE = frozenset({"linalg.map", "linalg.generic"})

Place: TypeAlias = tuple[int, ...]


def read_scalars(graph: Graph) -> bool:
    """Compute elements that are extracted at known places as scalars; whether there were any."""
    elements, changed = _Elements(), False
    with mlir.active(graph.context):
        for node in [node for node in graph.nodes() if node.name == EXTRACT]:
            tensor, *indices = node.operands
            place = tuple(number for index in indices if (number := constant_number(index)) is not None)
            scalar = elements.of(tensor, place) if len(place) == len(indices) else None
            if scalar is not None:
                node.result().raw.replace_all_uses_with(scalar.raw)
                changed = True
    return changed


class _Elements:
    """Elements of tensors as scalars, each built once, before what makes the tensor."""

    def __init__(self) -> None:
        self._known: dict[tuple[Value, Place], Value | None] = {}

    def of(self, tensor: Value, place: Place) -> Value | None:
        """The element at a place; None where it is what a tensor of the module holds."""
        key = (tensor, place)
        if key not in self._known:
            self._known[key] = None if tensor.node is None else self._compute(tensor.node, tensor.number, place)
        return self._known[key]

    def _compute(self, node: Node, result: int, place: Place) -> Value | None:
        build = Builder.before(node)
        if node.name in (COLLAPSE, EXPAND, READ) and len(node.operands) == 1:
            origin = _origin(node, place)
            return None if origin is None else self._read(build, node.operand(0), origin)
        is_whole = node.name == "linalg.map" or str(node.attribute("iterator_types")) == "[]"
        if node.name not in ELEMENTWISE or not is_whole:
            return None  # a generic op of several elements may read them at other places
        [block] = node.blocks
        given = [self._read(build, operand, place) for operand in node.operands[: len(block.arguments)]]
        found = build.inline(block, given)
        for raw in [raw for copy in build.built for raw in mlir.operations_within(copy.raw)]:
            if (inner := Node(raw)).name == OWN_PLACE:
                number = index_constant(Builder.before(inner), place[inner.integer("dim")])
                found = [number if value == inner.result() else value for value in found]
                raw.results[0].replace_all_uses_with(number.raw)
                raw.erase()
        return found[result]

    def _read(self, build: Builder, tensor: Value, place: Place) -> Value:
        found = self.of(tensor, place)
        if found is not None:
            return found
        indices = [index_constant(build, number) for number in place]
        return build.op(EXTRACT, [tensor, *indices], [mlir.tensor_element(tensor.raw.type)]).result()


def _origin(node: Node, place: Place) -> Place | None:
    """Where the element at a place of a slice, or of a reshape of one element, comes from."""
    source = node.operand(0)
    if node.name == READ:
        steps = zip(node.integers("static_offsets"), node.integers("static_strides"), place, strict=False)
        return tuple(start + stride * at for start, stride, at in steps) if len(place) == len(source.shape) else None
    return (0,) * len(source.shape) if all(size == 1 for size in source.shape) else None


# --- indices that are assumed to lie inside ---
#
# Their clamps, which `hlo_lower.lowering.scatter.assumed` builds, would stay in what jaxlib's pass makes of them. So a
# call stands for each until the other clamps are gone, which it makes needless:
#
#     %c = clamp 0, %i, 63 {hlo_lower.assumed}  ->  %c = custom_call @hlo_lower.assumed(%i)  ->  %i


def mark_assumed(graph: Graph) -> None:
    """Write a call in the place of each clamp of signed indices that are assumed to lie inside."""
    with mlir.active(graph.context):
        for node in filter(is_assumed, graph.nodes()):
            value = node.operand(1)
            if not value.element.is_unsigned:  # of which the call would keep the sign
                attributes = {"call_target_name": mlir.parse_attribute(f'"{ASSUMED}"')}
                attributes |= {name: node.raw.attributes[name] for name in (ASSUMED, ALONG)}
                value = Builder.before(node).op(CUSTOM_CALL, [value], [value.raw.type], attributes).result()
            node.result().raw.replace_all_uses_with(value.raw)
            node.raw.erase()


def unmark_assumed(graph: Graph) -> bool:
    """Take these calls away, and read through them; whether there were any."""
    found = list(filter(_stands_for_one, graph.nodes()))
    for node in found:
        node.result().raw.replace_all_uses_with(node.operand(0).raw)
        node.raw.erase()
    return bool(found) and (read_scalars(graph) or True)


def _stands_for_one(node: Node) -> bool:
    return node.name == CUSTOM_CALL and node.attribute(ASSUMED) is not None


def _greatest(element: Node) -> int | None:
    """The greatest that an element of indices is which are assumed to lie inside; None of any other element."""
    call = element.operand(0).node
    place = [constant_number(index) for index in element.operands[1:]]
    if call is None or not _stands_for_one(call):
        return None
    [along], limits = call.integers(ALONG), call.integers(ASSUMED)
    component = place[along] if along < len(place) else 0
    return None if component is None else limits[component]


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
    found = [node for node in graph.nodes() if node.name.startswith(("arith.", "scf.if"))]
    with mlir.active(graph.context):
        changed = [_drop(node) for node in found]
        changed += [_test(node) for node in found]
        changed += [_under(node) for node in found if node.name == "scf.if"]
    return any(changed)


def _drop(node: Node) -> bool:
    """Replace a maximum or minimum by its first side, where that is known to be it; whether it was."""
    if node.name not in GREATER + LESSER:
        return False
    value, bound = node.operands
    limit, (low, high) = constant_number(bound), _between(value)
    if limit is None or limit < 0 or low < 0 or (high > limit if node.name in LESSER else low < limit):
        return False
    node.result().raw.replace_all_uses_with(value.raw)
    return True


def _test(node: Node) -> bool:
    """Compare a number with the limit of its clamp, not with the clamp; whether it was compared so."""
    if node.name != "arith.cmpi" or node.integer("predicate") != EQUAL:
        return False
    for value, other in (node.operands, node.operands[::-1]):
        limit = _limit_of_clamp(other, value)
        if limit is not None:
            attributes = {"predicate": mlir.parse_attribute(f"{AT_MOST} : i64")}
            new = Builder.before(node).op("arith.cmpi", [value, limit], [node.result().raw.type], attributes)
            node.result().raw.replace_all_uses_with(new.result().raw)
            return True
    return False


def _limit_of_clamp(clamp: Value, value: Value) -> Value | None:
    """The limit, if the first value clamps the second between 0 and that limit, and neither bound is negative; else
    None."""
    least = clamp.node
    if least is None or least.name not in LESSER:
        return None
    inner, limit = least.operands
    signed = least.name == LESSER[0]
    if (number := constant_number(limit)) is None or number < 0:
        return None
    if inner == value and (not signed or _between(value)[0] >= 0):
        return limit  # without a sign no number is below 0
    greatest = inner.node
    if greatest is None or greatest.name != GREATER[not signed] or greatest.operand(0) != value:
        return None
    return limit if constant_number(greatest.operand(1)) == 0 else None


def _under(node: Node) -> bool:
    """Read a number, not its clamp, in a branch that only numbers between the bounds enter; whether one was read."""
    changed = False
    for test in _conjuncts(node.operand(0)):
        if test.name != "arith.cmpi" or test.integer("predicate") != AT_MOST:
            continue
        value, limit = test.operands
        for place, number, clamp in list(_reads(node.blocks[0])):
            found = _limit_of_clamp(clamp, value)
            if found is not None and constant_number(found) == constant_number(limit):
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
    for raw in (raw for top in block.nodes for raw in mlir.operations_within(top.raw)):
        node = Node(raw)
        for number, operand in enumerate(node.operands):
            yield node, number, operand


def _between(value: Value) -> tuple[float, float]:
    """Between which numbers a value lies by the clamps that it comes from, read with a sign; unknown is no bound."""
    nowhere = (float("-inf"), float("inf"))
    node, number = value.node, constant_number(value)
    if number is not None:
        return number, number
    if node is None:
        return nowhere
    if node.name == EXTRACT and (most := _greatest(node)) is not None:
        return 0, most
    if node.name in CASTS and str(node.result().raw.type) == "index":
        low, high = _between(node.operand(0))
        return (low, high) if low >= 0 else nowhere
    if node.name not in GREATER + LESSER or (limit := constant_number(node.operand(1))) is None:
        return nowhere
    low, high = _between(node.operand(0))
    if node.name == GREATER[0]:
        return max(low, limit), max(high, limit)
    if node.name == LESSER[0]:
        return min(low, limit), min(high, limit)
    return (0, limit) if node.name == LESSER[1] and limit >= 0 else nowhere
