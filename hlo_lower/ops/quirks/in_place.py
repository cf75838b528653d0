"""Arithmetic behind a reshape, which a consumer does in the memory of a number that is read again."""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Function, Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.quirks.loops import CALL
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, hold_operand, module, over_each
from hlo_lower.ops.quirks.sums import ARGUMENT, given_at_calls, makers_of
from hlo_lower.ops.spec import ELEMENTWISE

ARITHMETIC = (names.ADD, names.SUBTRACT, names.MULTIPLY, names.DIVIDE)
"""Ops that the interpreter does in the memory of an operand, as it does updates of a slice."""

FEW_BYTES = 4
"""Tensors of as many bytes at most are not shared; one of 8 bytes is."""


def _reshaped(value: Value) -> Value:
    """What stands there in another shape, in the same order."""
    while value.node is not None and value.is_static and _is_reshape(value.node):
        value = value.node.operand(0)
    return value


def _is_reshape(node: Node) -> bool:
    """Whether an op only gives another shape, as a broadcast or transposition of dims of 1 does, or nothing new."""
    if node.name not in SAME_ORDER or not node.is_static or len(node.operands) != 1:
        return False
    operand, result = node.operand(0), node.result()
    given, made = operand.static_shape, result.static_shape
    if node.name == names.BROADCAST_IN_DIM:
        order = [dim for dim, size in zip(node.integers("broadcast_dimensions"), given, strict=True) if size != 1]
        return prod(given) == prod(made) and order == sorted(order)
    if node.name == names.TRANSPOSE:
        order = [dim for dim in node.integers("permutation") if given[dim] != 1]
        return order == sorted(order)
    if node.name == names.REVERSE:
        return all(given[dim] == 1 for dim in node.integers("dimensions"))
    return node.name == names.RESHAPE or operand.raw.type == result.raw.type


SAME_ORDER = (
    names.RESHAPE,
    names.BROADCAST_IN_DIM,
    names.TRANSPOSE,
    names.REVERSE,
    names.CONVERT,
    names.SLICE,
    names.CONCATENATE,
)
"""Ops that may give what they are given, in the same order."""

MOST_SOURCES = 50
"""Values that are looked at; of one that has more sources nothing is told, and it is copied."""


def _sources(graph: Graph, value: Value) -> list[tuple[Value, bool]]:
    """What a value is another shape of, through calls, which the consumer inlines; and whether there is a call."""
    found: list[tuple[Value, bool]] = []
    pending = [(value, False)]
    while pending and len(found) < MOST_SOURCES:
        one, is_called = pending.pop()
        one = _reshaped(one)
        given = given_at_calls(graph, one)
        pending += [(before, True) for before in given]
        if not given:
            found.append((one, is_called))
    return found


def _readers(graph: Graph, value: Value) -> list[Node]:
    """What reads a value, once for each time; in the place of calls and returns, what does in the other function."""
    found, pending, seen = list[Node](), [value], {value}
    while pending:
        for use in pending.pop().raw.uses:
            node = Node(use.owner.operation)
            elsewhere = _read_at_calls(graph, node, use.operand_number)
            if seen.isdisjoint(elsewhere) and elsewhere:
                pending += elsewhere
                seen.update(elsewhere)
            else:
                found.append(node)
    return found


def _read_at_calls(graph: Graph, node: Node, number: int) -> list[Value]:
    """What an operand of a call is in the function, or one of a return at the calls of the function."""
    if node.name == CALL:
        function = graph.functions[node.callee]
        return [function.body.arguments[number]] if function.has_body else []
    if node.name != "func.return":
        return []
    function = Function(Node(node.raw.parent))
    return [] if function.is_public else [call.result(number) for call in graph.calls_of(function.name)]


def _is_read_again(graph: Graph, value: Value) -> bool:
    """Whether a value is read twice, through reshapes, which the consumer merges, or moves behind what reads them."""
    count, pending = 0, [value]
    while pending and count < 2:
        readers = _readers(graph, pending.pop())
        pending += [one.result() for one in readers if _is_reshape(one)]
        count += sum(not _is_reshape(one) for one in readers)
    return count > 1


def _may_be_shared(graph: Graph, value: Value, is_called: bool) -> bool:
    """Whether a number is read again that may lie in the memory of one that is not: the interpreter counts the readers
    of the latter. What a loop or a branch gives to a function may be such a number."""
    made = value.node
    if made is None:
        return is_called and value.block is not None and value.block.owner.name != "func.func"
    is_read_again = is_called or _is_read_again(graph, value)
    return is_read_again and made.name in (*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE, CALL)


def _shared_shapes(graph: Graph, value: Value) -> set[tuple[int, ...]]:
    """The shapes of the numbers that are read again of which a value is another shape, or one of them."""
    if not value.is_static or prod(value.static_shape) * value.element.bits <= 8 * FEW_BYTES:
        return set()
    return {one.static_shape for one, is_called in _sources(graph, value) if _may_be_shared(graph, one, is_called)}


def _changed(node: Node) -> list[Value]:
    """The operands in whose memory the result may be put."""
    return list(node.operands[:1] if node.name == names.DYNAMIC_UPDATE_SLICE else node.operands)


def _takes_shared(graph: Graph, node: Node) -> bool:
    """Whether an operand in whose memory the result may be put is one that is read again, in another shape."""
    return node.is_static and any(_shared_shapes(graph, operand) - {operand.static_shape} for operand in _changed(node))


def _dims_of(shape: Sequence[int], source: Sequence[int]) -> Sequence[int | None] | None:
    """For each dim of what is updated the dim of its source, None for those of 1; None where others are joined."""
    kept = [dim for dim, size in enumerate(source) if size != 1]
    if [size for size in shape if size != 1] != [source[dim] for dim in kept]:
        return None
    numbers = iter(kept)
    return [None if size == 1 else next(numbers) for size in shape]


@over_each(*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE)
def reshape_results(graph: Graph, node: Node) -> None:
    """Compute in the shape of what is read again, and reshape the result.

        %s = add (reshape %b), %c   ->   %s = reshape (add %b, (reshape %c))

    Equal: elements are computed one by one, and a reshape keeps their order. An update is moved so where the dims
    differ by some of 1. What would be shared still is reversed twice, which is a copy.
    """
    if not _takes_shared(graph, node):
        return
    build, changed = Builder.before(node), _changed(node)
    shared = [_shared_shapes(graph, operand) for operand in changed]
    own = changed[0].static_shape
    shape = min(shape for shapes in shared for shape in shapes if shape != own)
    others = node.operands[len(changed) :]
    if node.name == names.DYNAMIC_UPDATE_SLICE:
        update, *starts = others
        dims = _dims_of(own, shape)
        if dims is None:
            shape = own
        else:
            others = _update_of(build, update, starts, dims, len(shape))
    values = [
        _copy(build, one) if shapes - {shape} else one
        for one, shapes in zip((build.reshape(_reshaped(one), shape) for one in changed), shared, strict=True)
    ]
    made = build.clone(node, [*values, *others], [mlir.tensor_type(shape, node.result().element_type)]).result()
    node.result().raw.replace_all_uses_with(build.reshape(made, own).raw)
    node.raw.erase()


def _copy(build: Builder, value: Value) -> Value:
    shape = value.static_shape
    longest = max(range(len(shape)), key=lambda dim: shape[dim])
    return build.reverse(build.reverse(value, [longest]), [longest])


def _update_of(
    build: Builder, update: Value, starts: Sequence[Value], dims: Sequence[int | None], rank: int
) -> list[Value]:
    """The update and the starts of one of a value of so many dims, given which of them its dims are."""
    found, sizes = [build.zero_of(starts[0])] * rank, [1] * rank
    for dim, start, size in zip(dims, starts, update.static_shape, strict=True):
        if dim is not None:
            found[dim], sizes[dim] = start, size
    return [build.reshape(update, sizes), *found]


PLAIN = ELEMENTWISE | {names.CONSTANT, names.IOTA, names.OPTIMIZATION_BARRIER, ARGUMENT}
"""What no reshape is made for."""


def _is_reshaped_later(graph: Graph, node: Node) -> bool:
    """Whether a number that is read in two shapes, once by arithmetic, may come from a reshape, which the consumer
    moves behind it: what is read is then twice a reshape of one number."""
    readers = _readers(graph, node.result())
    is_changed = any(one.name in (*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE) for one in readers)
    if not node.is_static or not is_changed or not any(map(_is_reshape, readers)):
        return False
    return any(_may_be_reshape(graph, operand) for operand in node.operands)


def _may_be_reshape(graph: Graph, value: Value) -> bool:
    found = makers_of(graph, value)
    return found is None or not found <= PLAIN


@over_each(*ARITHMETIC)
def hold_reshaped(graph: Graph, node: Node) -> None:
    """Put barriers behind what a number is computed of, so that no reshape is moved behind it."""
    if _is_reshaped_later(graph, node):
        for number, operand in enumerate(node.operands):
            if _may_be_reshape(graph, operand):
                hold_operand(node, number)


V, M = "tensor<64xi32>", "tensor<8x8xi32>"

SHARED = Quirk(
    "arithmetic behind a reshape",
    (*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE),
    {"litert": "it overwrites a number that is read again, if that lies in the memory of one that is not"},
    "the same op before the reshape",
    module(
        f"%x: {V}, %m: {M}",
        V,
        f"%a = stablehlo.add %x, %x : {V}",
        f"%b = stablehlo.add %a, %x : {V}",
        f"%n = stablehlo.reshape %b : ({V}) -> {M}",
        f"%t = stablehlo.transpose %m, dims = [1, 0] : ({M}) -> {M}",
        f"%s = stablehlo.subtract %n, %t : {M}",
        f"%u = stablehlo.transpose %s, dims = [1, 0] : ({M}) -> {M}",
        f"%v = stablehlo.reshape %u : ({M}) -> {V}",
        f"%r = stablehlo.maximum %v, %b : {V}",
    ),
    _takes_shared,
    (
        Rewrite(
            "reshape-results", "computes before a reshape what would be put in its memory", reshape_results, Place.LAST
        ),
        Rewrite("hold-reshaped", "holds back reshapes of what is read in two shapes", hold_reshaped, Place.LAST),
    ),
    is_reported=False,
)
