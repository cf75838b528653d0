"""Reductions in one form while a module is StableHLO: of values before they are turned or reshaped.

what                                               its one form
reduce of a transpose                              the transposed reduce of what is turned
reduce of a reshape, of whole groups of its dims   the reshaped reduce over the dims that were joined or split
reduce over dims of extent 1 beside others         over the others, its result reshaped
reduce of a reduce by the same op, of any order    one over the dims of both
reduce_window of all elements along its dims       reduce over these dims, its result reshaped

Equal, to the bit: the elements that are reduced to one stay the same, and in their order, that of their dims. Where the
order is another one, or a reduce is split, the op is one that no order changes: a maximum, minimum, and, or, xor, or
a sum or product of integers.
"""

from collections.abc import Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.moved_forms import groups_of, maker_named
from hlo_lower.lowering.linalg.open_sizes import RESHAPES, reshape, sizes_of
from hlo_lower.ops import names
from hlo_lower.ops.axes.op_axes import is_neutral, is_one_op
from hlo_lower.ops.names import REDUCE, TRANSPOSE

ROUNDED = (names.ADD, names.MULTIPLY)
"""What gives other floats in another order."""


def is_of_any_order(node: Node) -> bool:
    """Whether it does not matter in which order a reduce, or a window, takes its elements."""
    name = next(iter(node.blocks[0].nodes)).name
    return is_one_op(node.blocks[0]) and (name not in ROUNDED or node.result().element.is_integer)


def is_in_order(node: Node, dims: Sequence[int]) -> bool:
    """Whether elements along dims in this order are taken in the order of the dims, or no order matters."""
    return list(dims) == sorted(dims) or is_of_any_order(node)


def reduce_of_sources(build: Builder, node: Node) -> Value | None:
    """A reduce of one value in its one form; see the head of this file."""
    shape, dims = sizes_of(node.operand(0)), node.integers("dimensions")
    if len(node.results) != 1 or 0 in shape or all(shape[dim] == 1 for dim in dims):
        return None
    made = _of_turned(build, node, dims) or _of_reshaped(build, node, dims) or _of_reduced(build, node, dims)
    long = [dim for dim in dims if shape[dim] != 1]
    if made is not None or len(long) == len(dims):
        return made
    return reshape(build, _reduce_value(build, node, node.operand(0), long), sizes_of(node.result()))


def _reduce_value(build: Builder, node: Node, value: Value, dims: Sequence[int]) -> Value:
    """What a reduce makes of another value, over other dims."""
    shape = [size for dim, size in enumerate(value.shape) if dim not in dims]
    raw_type = mlir.tensor_type(shape, value.element_type)
    return build.copy_on(
        node, [value, node.operand(1)], [raw_type], {"dimensions": mlir.dense_i64(sorted(dims))}
    ).result()


def _of_turned(build: Builder, node: Node, dims: Sequence[int]) -> Value | None:
    turn = maker_named(node.operand(0), TRANSPOSE)
    if turn is None:
        return None
    source, permutation = turn.operand(0), turn.integers("permutation")
    order = [permutation[dim] for dim in sorted(dims) if source.shape[permutation[dim]] != 1]
    if not is_in_order(node, order):
        return None
    kept = [permutation[dim] for dim in range(len(permutation)) if dim not in dims]
    made = _reduce_value(build, node, source, [permutation[dim] for dim in dims])
    return build.transpose(made, [sorted(kept).index(dim) for dim in kept])


def _of_reshaped(build: Builder, node: Node, dims: Sequence[int]) -> Value | None:
    maker = maker_named(node.operand(0), *RESHAPES)
    if maker is None:
        return None
    source, shape = maker.operand(0), sizes_of(node.operand(0))
    groups = groups_of(sizes_of(source), shape)
    if groups is None:
        return None
    gone: list[int] = []
    for before, after in groups:
        long = [dim for dim in after if shape[dim] != 1]
        within = [dim for dim in long if dim in dims]
        if within and within != long:
            return None  # a part of what was one dim, or of what is
        gone += [dim for dim in before if within and source.shape[dim] != 1]
    return reshape(build, _reduce_value(build, node, source, gone), sizes_of(node.result()))


def _of_reduced(build: Builder, node: Node, dims: Sequence[int]) -> Value | None:
    inner = maker_named(node.operand(0), REDUCE)
    if inner is None or len(inner.results) != 1 or not is_of_any_order(node) or not is_of_any_order(inner):
        return None
    name, within = (next(iter(one.blocks[0].nodes)).name for one in (node, inner))
    if name != within or not is_neutral(inner.operand(1), name.removeprefix("stablehlo.")):
        return None
    first = inner.integers("dimensions")
    left = [dim for dim in range(len(inner.operand(0).shape)) if dim not in first]
    return _reduce_value(build, node, inner.operand(0), [*first, *(left[dim] for dim in dims)])


def reduce_of_window(build: Builder, node: Node) -> Value | None:
    """Of a window over all elements along some dims, and of one along the others: a reduce."""
    if len(node.results) != 1 or not is_one_op(node.blocks[0]):
        return None
    shape, window = node.operand(0).shape, node.integers("window_dimensions")
    ones = (1,) * len(shape)
    is_plain = all(node.integers(name, ones) == ones for name in ("base_dilations", "window_dilations"))
    whole = [dim for dim, size in enumerate(window) if size == shape[dim] and size != 1]
    if (
        not is_plain
        or any(node.padding(len(shape)))
        or any(window[d] != 1 for d in range(len(shape)) if d not in whole)
    ):
        return None
    steps = node.integers("window_strides", ones)
    if not whole or any(steps[dim] != 1 for dim in range(len(shape)) if dim not in whole):
        return None
    kept = [size for dim, size in enumerate(shape) if dim not in whole]
    raw_type = mlir.tensor_type(kept, node.result().element_type)
    made = build.op(REDUCE, node.operands, [raw_type], {"dimensions": mlir.dense_i64(whole)}, regions=1)
    [combiner, _], types = node.blocks[0].nodes, [value.raw.type for value in node.blocks[0].arguments]
    build.region(made, 0, types, lambda inner, given: [inner.elementwise(combiner.name, *given)])
    return reshape(build, made.result(), sizes_of(node.result()))
