"""What moves elements, in one form while a module is StableHLO: reshapes and broadcasts.

what                                          its one form
reshape, broadcast of such a one              one of them; of one number, a constant
broadcast of dims of extent 1                 of a value without them
reshape of elementwise ops                    reshapes of what they take, where those come of reshapes and broadcasts
"""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.names import BROADCAST_IN_DIM, CONSTANT, DYNAMIC_BROADCAST_IN_DIM, RESHAPE
from hlo_lower.ops.spec import ELEMENTWISE

Groups = list[tuple[list[int], list[int]]]
"""Dims of a shape, and those of another one that hold the same elements in the same order."""


def groups_of(before: Sequence[int], after: Sequence[int]) -> Groups:
    """The dims of two shapes of equally many elements, more than none, in the least groups that a reshape keeps."""
    groups: Groups = []
    first = second = 0
    while first < len(before) or second < len(after):
        left, right = [first] * (first < len(before)), [second] * (second < len(after))
        while (of_left := prod(before[d] for d in left)) != (of_right := prod(after[d] for d in right)):
            if of_left < of_right:
                left.append(first + len(left))
            else:
                right.append(second + len(right))
        first, second = first + len(left), second + len(right)
        groups.append((left, right))
    return groups


def static_maker(value: Value, name: str) -> Node | None:
    """The op that makes a value, where it is one of a name, of static shapes."""
    node = value.node
    return node if node is not None and node.name == name and node.is_static else None


def maker_named(value: Value, name: str) -> Node | None:
    """The op that makes a value, where it is one of a name, of any shapes."""
    node = value.node
    return node if node is not None and node.name == name else None


def scalar_at(build: Builder, value: Value) -> Value | None:
    """The scalar that stands at every place of a value, which has dims; None where that is not seen."""
    spread = static_maker(value, BROADCAST_IN_DIM) or maker_named(value, DYNAMIC_BROADCAST_IN_DIM)
    constant = static_maker(value, CONSTANT)
    if spread is not None and spread.operand(0).shape == ():
        return spread.operand(0)
    if constant is None or not mlir.is_splat(constant.raw) or not value.shape:
        return None
    raw_type = mlir.tensor_type((), value.element_type)
    return build.op(
        CONSTANT, [], [raw_type], {"value": mlir.resplat(constant.raw.attributes["value"], raw_type)}
    ).result()


def filled_with(build: Builder, scalar: Value, shape: Sequence[int]) -> Value:
    """A scalar at every place of a shape: of a constant a constant, which jaxlib's pass reads as a scalar."""
    constant = static_maker(scalar, CONSTANT)
    if constant is None or not shape or scalar.element.is_complex:
        return build.broadcast(scalar, shape)
    raw_type = mlir.tensor_type(shape, scalar.element_type)
    return build.op(
        CONSTANT, [], [raw_type], {"value": mlir.resplat(constant.raw.attributes["value"], raw_type)}
    ).result()


def is_scalar(value: Value) -> bool:
    """Whether one scalar stands at every place of a value, which has dims."""
    spread = static_maker(value, BROADCAST_IN_DIM) or maker_named(value, DYNAMIC_BROADCAST_IN_DIM)
    constant = static_maker(value, CONSTANT)
    of_scalar = spread is not None and spread.operand(0).shape == ()
    return of_scalar or (constant is not None and bool(value.shape) and mlir.is_splat(constant.raw))


def number_at(value: Value) -> float | int | None:
    """The number that stands at every place of a value, where it is a constant one."""
    spread = static_maker(value, BROADCAST_IN_DIM) or maker_named(value, DYNAMIC_BROADCAST_IN_DIM)
    constant = static_maker(spread.operand(0) if spread is not None else value, CONSTANT)
    if constant is None or not mlir.is_splat(constant.raw) or constant.result().element.is_complex:
        return None
    array = constant.constant()
    return None if array is None or not array.size else array.reshape(-1)[0].item()


def is_read_once(value: Value) -> bool:
    """Whether one operand of one op is all that reads a value."""
    users = list(value.users)
    return len(users) == 1 and users[0].operands.count(value) == 1


def reshaped_once(build: Builder, node: Node) -> Value | None:
    """Of a reshape or broadcast: one op. Of elementwise ops: see `_absorbs`."""
    value, shape = node.operand(0), node.result().static_shape
    return value if value.shape == shape else _value_in_shape(build, value, shape)


def _value_in_shape(build: Builder, value: Value, shape: Sequence[int]) -> Value | None:
    """A value in another shape, where no reshape is needed for that, or not this one."""
    source = value.node
    if source is None or not source.is_static or 0 in shape:
        return None
    if source.name == RESHAPE:
        return build.reshape(source.operand(0), shape)
    if is_scalar(value):
        scalar = scalar_at(build, value)
        return None if scalar is None else filled_with(build, scalar, shape)
    if source.name == BROADCAST_IN_DIM:
        return _spread(build, source, shape)
    if source.name in ELEMENTWISE and _absorbs(value, shape) and _is_read_in(value, shape):
        given = [operand if stays(operand, source) else _in_shape(build, operand, shape) for operand in source.operands]
        return build.clone(source, given, [mlir.tensor_type(shape, value.element_type)]).result()
    return None


def _in_shape(build: Builder, value: Value, shape: Sequence[int]) -> Value:
    return _value_in_shape(build, value, shape) or build.reshape(value, shape)


def stays(operand: Value, of: Node) -> bool:
    """Whether an operand is a scalar beside others that are none: a predicate, a bound."""
    return operand.shape == () and of.result().shape != ()


def _is_read_in(value: Value, shape: Sequence[int]) -> bool:
    """Whether a value is read by reshapes to one shape alone."""
    return all(user.name == RESHAPE and user.result().shape == tuple(shape) for user in value.users)


def _absorbs(value: Value, shape: Sequence[int]) -> bool:
    """Whether reshapes of what an op takes are no more ops than one of its result: all but one of its operands come
    of a reshape or of a scalar, or are themselves ops of which that is true."""
    source = value.node
    if source is None or not source.is_static:
        return False
    if source.name == RESHAPE or is_scalar(value):
        return True
    if source.name == BROADCAST_IN_DIM:
        return _dims_after_reshape(source, shape) is not None
    if source.name not in ELEMENTWISE or not _is_read_in(value, shape):
        return False
    left = [
        operand for operand in source.operands if not stays(operand, source) and not _absorbs_within(operand, shape)
    ]
    return len(set(left)) <= 1


def _absorbs_within(value: Value, shape: Sequence[int]) -> bool:
    source = value.node
    if source is None or source.name not in ELEMENTWISE:
        return _absorbs(value, shape)
    operands = [operand for operand in source.operands if not stays(operand, source)]
    is_read_once = len(list(value.users)) == 1
    return source.is_static and is_read_once and all(_absorbs_within(operand, shape) for operand in operands)


def _dims_after_reshape(spread: Node, shape: Sequence[int]) -> list[int] | None:
    """The dims of a shape along which the operand of a broadcast lies, once its result is reshaped to that; None
    where a dim would be made of its elements and of copies."""
    operand, dims = spread.operand(0), spread.integers("broadcast_dimensions")
    before = spread.result().static_shape
    if any(size != before[dim] for size, dim in zip(operand.static_shape, dims, strict=True)) or list(dims) != sorted(
        dims
    ):
        return None
    kept: list[int] = []
    for left, right in groups_of(before, shape):
        own = prod(before[dim] for dim in left if dim in dims)
        if own not in (1, prod(before[dim] for dim in left)):
            return None
        kept += [dim for dim in right if own != 1 and shape[dim] != 1]
    return kept


def _spread(build: Builder, spread: Node, shape: Sequence[int]) -> Value | None:
    dims = _dims_after_reshape(spread, shape)
    if dims is None:
        return None
    return build.broadcast(build.reshape(spread.operand(0), [shape[dim] for dim in dims]), shape, dims)


def broadcast_once(build: Builder, node: Node) -> Value | None:
    """In one step, with dims in order, dims of extent 1 as `_units_placed` says; what spreads nothing is a reshape."""
    value, shape, dims = node.operand(0), node.result().static_shape, node.integers("broadcast_dimensions")
    if 0 in shape:
        return None
    if not value.shape:
        is_kept = static_maker(value, CONSTANT) is None or not shape or value.element.is_complex
        return None if is_kept else filled_with(build, value, shape)
    if (scalar := scalar_at(build, value)) is not None:
        return filled_with(build, scalar, shape)
    sizes = value.static_shape
    order = sorted(range(len(dims)), key=lambda number: dims[number])
    if prod(sizes) == prod(shape):
        return build.reshape(build.transpose(value, order), shape)
    if order != sorted(order):
        return build.broadcast(value, shape, dims)
    inner = static_maker(value, BROADCAST_IN_DIM)
    if inner is not None:
        within = inner.integers("broadcast_dimensions")
        return build.broadcast(inner.operand(0), shape, [dims[dim] for dim in within])
    long = [dim for dim, size in zip(dims, sizes, strict=True) if size != 1]
    reshape = static_maker(value, RESHAPE)
    source = value if reshape is None or _long(reshape.operand(0)) != _long(value) else reshape.operand(0)
    placed = _units_placed(source.static_shape, long, shape)
    if placed is not None:
        return None if source == value and placed == list(dims) else build.broadcast(source, shape, placed)
    if len(long) == len(sizes):
        return None
    return build.broadcast(build.reshape(value, _long(value)), shape, long)


def _long(value: Value) -> list[int]:
    return [size for size in value.static_shape if size != 1]


def _units_placed(sizes: Sequence[int], long: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """The dims of a shape for those of a value that is broadcast, whose long ones have theirs: each of extent 1 takes
    the next one of extent 1 that is free; None where there is none."""
    placed: list[int] = []
    left = list(long)
    for size in sizes:
        after = placed[-1] + 1 if placed else 0
        before = left[0] if left else len(shape)
        free = [dim for dim in range(after, before) if shape[dim] == 1]
        if size == 1 and not free:
            return None
        placed.append(free[0] if size == 1 else left.pop(0))
    return placed
