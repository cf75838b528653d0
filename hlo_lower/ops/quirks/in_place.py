"""What a consumer does in the memory of an operand: arithmetic behind a reshape, and updates made of what they write
over."""

from collections.abc import Sequence
from math import prod

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.origins import (
    CALL,
    MOVED_OR_ALONE,
    UNMOVED,
    ComesFrom,
    given_at_calls,
    made_by_others,
    read_at_calls,
)
from hlo_lower.ops.quirks.quirk import Place, Quirk, Rewrite, Rules, hold_operand, module, over_each
from hlo_lower.ops.spec import ELEMENTWISE, MOVES, RESHAPING

ARITHMETIC = (names.ADD, names.SUBTRACT, names.MULTIPLY, names.DIVIDE)
"""Ops that the interpreter does in the memory of an operand, as it does updates of a slice."""

FEW_BYTES = 4
"""Tensors of as many bytes at most are not shared; one of 8 bytes is."""


def _reshaped(value: Value) -> Value:
    """What stands there in another shape, in the same order."""
    while value.node is not None and value.is_static and is_reshape(value.node):
        value = value.node.operand(0)
    return value


def is_reshape(node: Node) -> bool:
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


def _sources(graph: Graph, value: Value) -> list[tuple[Value, bool]]:
    """What a value is another shape of, through calls, which the consumer inlines; and whether there is a call."""
    found: list[tuple[Value, bool]] = []
    pending, seen = [(_reshaped(value), False)], set[Value]()
    while pending:
        one, is_called = pending.pop()
        given = [_reshaped(before) for before in given_at_calls(graph, one)]
        pending += [(before, True) for before in given if before not in seen]
        seen.update(given)
        if not given:
            found.append((one, is_called))
    return found


def _readers(graph: Graph, value: Value) -> list[Node]:
    """What reads a value, once for each time; in the place of calls and returns, what does in the other function."""
    found, pending, seen = list[Node](), [value], {value}
    while pending:
        for use in pending.pop().raw.uses:
            node = Node(use.owner.operation)
            elsewhere = read_at_calls(graph, node, use.operand_number)
            if seen.isdisjoint(elsewhere) and elsewhere:
                pending += elsewhere
                seen.update(elsewhere)
            else:
                found.append(node)
    return found


def _is_read_again(graph: Graph, value: Value) -> bool:
    """Whether a value is read twice, through reshapes, which the consumer merges, or moves behind what reads them."""
    count, pending = 0, [value]
    while pending and count < 2:
        readers = _readers(graph, pending.pop())
        pending += [one.result() for one in readers if is_reshape(one)]
        count += sum(not is_reshape(one) for one in readers)
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


MOST_READ = 200
"""Ops before an update that are looked at; of more it is taken that they read what is written over."""

WINDOWS = (names.SLICE, names.DYNAMIC_SLICE)


SUMS = (names.DOT_GENERAL, names.CONVOLUTION, names.REDUCE, names.REDUCE_WINDOW)


def _number(start: Value) -> int | Value:
    """What a start is: its number where that is known."""
    known = start.node is not None and start.node.name == names.CONSTANT and mlir.constant_value(start.node.raw)
    return int(known) if isinstance(known, np.ndarray) and not known.shape else start


def _window(node: Node) -> tuple[list[int | Value], Sequence[int]] | None:
    """Where a slice of a value, or an update of one, starts, and its sizes; None where it leaves elements out."""
    if node.name == names.SLICE:
        is_dense = all(step == 1 for step in node.integers("strides"))
        return ([*node.integers("start_indices")], node.result().static_shape) if is_dense else None
    first, sized = (1, node.result()) if node.name == names.DYNAMIC_SLICE else (2, node.operand(1))
    sizes, shape = sized.static_shape, node.operand(0).static_shape
    starts = [_number(start) for start in node.operands[first:]]
    limits = [n - size for n, size in zip(shape, sizes, strict=True)]
    clamped = [
        min(max(start, 0), limit) if isinstance(start, int) else start
        for start, limit in zip(starts, limits, strict=True)
    ]
    return clamped, sizes


def _are_apart(one: tuple[list[int | Value], Sequence[int]], other: tuple[list[int | Value], Sequence[int]]) -> bool:
    """Whether two windows have no element in common, along some dim in which both starts are known."""
    return any(
        isinstance(a, int) and isinstance(b, int) and (a + m <= b or b + n <= a)
        for a, m, b, n in zip(*one, *other, strict=True)
    )


def _keeps_places(node: Node) -> bool:
    """Whether each element of the result is made of the one at its place, in row-major order."""
    if node.name in RESHAPING - {names.TRANSPOSE}:
        return node.is_static and prod(node.operand(0).static_shape) == prod(node.result().static_shape)
    return node.name in ELEMENTWISE


def _writes_part_of_itself(graph: Graph, node: Node) -> bool:
    """Whether what an update is made of lies elsewhere in what is written over: the consumer makes the update as it
    writes it, with one sum or product at most; what that is made of by another one it makes before."""
    operand, written = node.operand(0), _window(node)
    pending = [(node.operand(1), False, False)]
    seen = set(pending)
    while pending and len(seen) <= MOST_READ:
        value, is_moved, is_summed = pending.pop()
        made = value.node
        if _are_equal(value, operand):
            if is_moved:
                return True
            continue
        if made is not None and made.name in WINDOWS and made.is_static and _may_be_of(made, operand, node.operand(1)):
            read = _window(made)
            if read is None or written is None or (read != written and not _are_apart(read, written)):
                return True
            if read == written and is_moved:
                return True
            continue
        given = given_at_calls(graph, value)
        if given or made is None or made.name == CALL:
            more = [(one, is_moved, is_summed) for one in given]
        elif made.name in ELEMENTWISE | MOVES:
            keeps = [_keeps_places(made)] * len(made.operands)
            if made.name == names.DYNAMIC_UPDATE_SLICE:
                keeps[0] = True
            more = [(one, is_moved or not kept, is_summed) for one, kept in zip(made.operands, keeps, strict=True)]
        else:
            is_sum = made.name in SUMS and not is_summed
            more = [(one, True, True) for one in made.operands] if is_sum else []
        more = [one for one in more if one not in seen]
        seen.update(more)
        pending += more
    return bool(pending)


MOST_MAKERS = 6
"""Ops of which a value is made that are compared with those of another one."""


def _are_equal(one: Value, other: Value, within: int = MOST_MAKERS) -> bool:
    """Whether two values are made by the same ops of the same values, as the consumer sees, which keeps one of them."""
    if one == other:
        return True
    a, b = one.node, other.node
    if a is None or b is None or not within or a.name != b.name or one.number != other.number or a.blocks:
        return False
    is_alike = len(a.operands) == len(b.operands) and mlir.attribute_key(a.raw) == mlir.attribute_key(b.raw)
    return is_alike and all(_are_equal(x, y, within - 1) for x, y in zip(a.operands, b.operands, strict=True))


def _may_be_of(window: Node, operand: Value, update: Value) -> bool:
    """Whether a window is one of the operand; or is the update and of its type: then it may be one, computed anew."""
    while update.node is not None and update.node.name in RESHAPING - {names.TRANSPOSE}:
        update = update.node.operand(0)
    is_alike = window.name == names.SLICE and window.operand(0).raw.type == operand.raw.type
    return _are_equal(window.operand(0), operand) or (is_alike and update == window.result())


PART_OF_ITSELF = Quirk(
    "dynamic_update_slice of a part of its operand",
    (names.DYNAMIC_UPDATE_SLICE,),
    {"iree": "it copies in place, and reads what it has written"},
    "a `select` between the operand and the moved update",
    module(
        "%x: tensor<6xf32>, %i: tensor<i32>",
        "tensor<6xf32>",
        "%u = stablehlo.slice %x [0:4] : (tensor<6xf32>) -> tensor<4xf32>",
        "%r = stablehlo.dynamic_update_slice %x, %u, %i",
        "  : (tensor<6xf32>, tensor<4xf32>, tensor<i32>) -> tensor<6xf32>",
    ),
    _writes_part_of_itself,
    (Rules("op", ("update_to_padded_slice",)),),
)


class _ReshapedLater:
    """The operands of an op that a reshape may come to stand behind, so that what is read is twice a reshape of one
    number: those that may come from one, of a result that is read in two shapes, once by arithmetic."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._is_reshaped = ComesFrom(graph, made_by_others(UNMOVED), MOVED_OR_ALONE)

    def __call__(self, node: Node) -> list[int]:
        readers = _readers(self._graph, node.result())
        is_changed = any(one.name in (*ARITHMETIC, names.DYNAMIC_UPDATE_SLICE) for one in readers)
        if not node.is_static or not is_changed or not any(map(is_reshape, readers)):
            return []
        return [number for number, operand in enumerate(node.operands) if self._is_reshaped(operand)]


@over_each(*ARITHMETIC, of=_ReshapedLater)
def hold_reshaped(reshaped_later: _ReshapedLater, node: Node) -> None:
    """Put barriers behind what a number is computed of, so that no reshape is moved behind it."""
    for number in reshaped_later(node):
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
        Rewrite("reshape-results", "computes first what a reshape would write over", reshape_results, Place.LAST),
        Rewrite("hold-reshaped", "holds back reshapes of what is read in two shapes", hold_reshaped, Place.LAST),
    ),
    is_reported=False,
)
