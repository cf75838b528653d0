"""Arithmetic behind a reshape, which a consumer does in the memory of a number that is read again."""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.quirks.loops import CALL
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, module, over_each

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
    """Whether an op only gives another shape, as a broadcast or transposition of dims of 1 does."""
    if node.name not in (names.RESHAPE, names.BROADCAST_IN_DIM, names.TRANSPOSE) or not node.is_static:
        return False
    given, made = node.operand(0).static_shape, node.result().static_shape
    if node.name == names.TRANSPOSE:
        order = [dim for dim in node.integers("permutation") if given[dim] != 1]
        return order == sorted(order)
    return prod(given) == prod(made)


def _may_be_shared(value: Value) -> bool:
    """Whether a number is read again that may lie in the memory of one that is not: the interpreter counts the readers
    of the latter. An argument of a function, and what a call gives, may be such a number."""
    made = value.node
    if made is None:
        return value.block is not None and "sym_visibility" in mlir.attributes_of(value.block.owner.raw)
    is_read_again = len(list(value.raw.uses)) > 1
    return is_read_again and made.name in (*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE, CALL)


def _shared_source(value: Value) -> Value | None:
    """The number that is read again, of which a value is another shape; None where it is none."""
    source = _reshaped(value)
    is_large = value.is_static and prod(value.static_shape) * value.element.bits > 8 * FEW_BYTES
    return source if source.shape != value.shape and is_large and _may_be_shared(source) else None


def _takes_shared(_graph: Graph, node: Node) -> bool:
    """Whether an operand in whose memory the result may be put is one that is read again."""
    changed = node.operands[:1] if node.name == names.DYNAMIC_UPDATE_SLICE else node.operands
    return node.is_static and any(_shared_source(operand) is not None for operand in changed)


def _dims_of(update: Node) -> Sequence[int | None] | None:
    """For each dim of what is updated the dim of its source, None for those of 1; None where others are joined."""
    value = update.operand(0)
    shape, source = value.static_shape, _reshaped(value).static_shape
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
    build = Builder.before(node)
    if node.name == names.DYNAMIC_UPDATE_SLICE:
        value, update, *starts = node.operands
        source, dims = _reshaped(value), _dims_of(node)
        if dims is None:
            source, operands = value, [_copy(build, value), update, *starts]
        else:
            operands = [source, *_update_of(build, update, starts, dims, len(source.static_shape))]
    else:
        shared = [_shared_source(operand) for operand in node.operands]
        source = next(value for value in shared if value is not None)
        operands = [build.reshape(_reshaped(operand), source.static_shape) for operand in node.operands]
        pairs = zip(operands, shared, strict=True)
        operands = [_copy(build, one) if first is not None and one != first else one for one, first in pairs]
    made = build.clone(node, operands, [source.raw.type]).result()
    node.result().raw.replace_all_uses_with(build.reshape(made, node.result().static_shape).raw)
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
    ),
    is_reported=False,
)
