"""What moves elements, in one form while a module is StableHLO: reshapes, broadcasts and slices.

what                                          its one form
reshape, broadcast of such a one              one of them; of one number, a constant
slice of all elements                         what it is of
broadcast of dims of extent 1                 of a value without them
reshape of elementwise ops                    reshapes of what they take, where those come of reshapes and broadcasts
"""

from collections.abc import Sequence
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.linalg.open_sizes import (
    RESHAPES,
    SPREADS,
    Size,
    broadcast,
    quotient,
    reshape,
    sizes_of,
    type_of,
)
from hlo_lower.ops.names import CONSTANT
from hlo_lower.ops.spec import ELEMENTWISE

Groups = list[tuple[list[int], list[int]]]
"""Dims of a shape, and those of another one that hold the same elements in the same order."""


def groups_of(before: Sequence[Size], after: Sequence[Size]) -> Groups | None:
    """The dims of two shapes in the least groups that a reshape keeps; None where it is not seen that both have equally
    many elements, or where they have none."""
    if prod(before) != prod(after) or 0 in before:
        return None
    groups: Groups = []
    first = second = 0
    while first < len(before) or second < len(after):
        left, right = [first] * (first < len(before)), [second] * (second < len(after))
        while (of_left := prod(before[d] for d in left)) != (of_right := prod(after[d] for d in right)):
            is_left, is_right = first + len(left) < len(before), second + len(right) < len(after)
            if is_left and (not is_right or quotient(of_left, of_right) is None):
                left.append(first + len(left))
            elif is_right:
                right.append(second + len(right))
            else:
                return None
        first, second = first + len(left), second + len(right)
        groups.append((left, right))
    return groups


def static_maker(value: Value, name: str) -> Node | None:
    """The op that makes a value, where it is one of a name, of static shapes."""
    node = value.node
    return node if node is not None and node.name == name and node.is_static else None


def maker_named(value: Value, *names: str) -> Node | None:
    """The op that makes a value, where it is one of these names, of any shapes."""
    node = value.node
    return node if node is not None and node.name in names else None


def scalar_at(build: Builder, value: Value) -> Value | None:
    """The scalar that stands at every place of a value, which has dims; None where that is not seen."""
    spread = maker_named(value, *SPREADS)
    constant = static_maker(value, CONSTANT)
    if spread is not None and spread.operand(0).shape == ():
        return spread.operand(0)
    if constant is None or not mlir.is_splat(constant.raw) or not value.shape:
        return None
    return _resplat(build, constant, ())


def filled_with(build: Builder, scalar: Value, shape: Sequence[Size]) -> Value:
    """A scalar at every place of a shape: of a constant a constant, which jaxlib's pass reads as a scalar."""
    constant, known = static_maker(scalar, CONSTANT), [size for size in shape if isinstance(size, int)]
    if constant is None or not shape or scalar.element.is_complex or len(known) < len(shape):
        return broadcast(build, scalar, shape)
    return _resplat(build, constant, known)


def _resplat(build: Builder, constant: Node, shape: Sequence[int]) -> Value:
    """The number of a constant at every place of another shape."""
    raw_type = mlir.tensor_type(shape, constant.result().element_type)
    value = mlir.resplat(constant.raw.attributes["value"], raw_type)
    return build.op(CONSTANT, [], [raw_type], {"value": value}).result()


def is_scalar(value: Value) -> bool:
    """Whether one scalar stands at every place of a value, which has dims."""
    spread = maker_named(value, *SPREADS)
    constant = static_maker(value, CONSTANT)
    of_scalar = spread is not None and spread.operand(0).shape == ()
    return of_scalar or (constant is not None and bool(value.shape) and mlir.is_splat(constant.raw))


def number_at(value: Value) -> float | int | None:
    """The number that stands at every place of a value, where it is a constant one."""
    spread = maker_named(value, *SPREADS)
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
    value, shape = node.operand(0), sizes_of(node.result())
    return value if sizes_of(value) == shape else _value_in_shape(build, value, shape)


def sliced_whole(build: Builder, node: Node) -> Value | None:
    """What a slice of all elements is of, which JAX 0.9 writes for `x[:, :, 0, 0]` of dims of extent 1."""
    value = node.operand(0)
    return value if node.is_static and value.shape == node.result().shape else None


def _value_in_shape(build: Builder, value: Value, shape: Sequence[Size]) -> Value | None:
    """A value in another shape, where no reshape is needed for that, or not this one."""
    source = value.node
    if source is None or 0 in shape:
        return None
    if source.name in RESHAPES:
        return reshape(build, source.operand(0), shape)
    if is_scalar(value):
        scalar = scalar_at(build, value)
        return None if scalar is None else filled_with(build, scalar, shape)
    if source.name in SPREADS:
        return _spread(build, source, shape)
    if source.name in ELEMENTWISE and _absorbs(value, shape) and _is_read_in(value, shape):
        given = [operand if stays(operand, source) else _in_shape(build, operand, shape) for operand in source.operands]
        return build.clone(source, given, [type_of(shape, value)]).result()
    return None


def _in_shape(build: Builder, value: Value, shape: Sequence[Size]) -> Value:
    return _value_in_shape(build, value, shape) or reshape(build, value, shape)


def stays(operand: Value, of: Node) -> bool:
    """Whether an operand is a scalar beside others that are none: a predicate, a bound."""
    return operand.shape == () and of.result().shape != ()


def _is_read_in(value: Value, shape: Sequence[Size]) -> bool:
    """Whether a value is read by reshapes to one shape alone."""
    return all(user.name in RESHAPES and sizes_of(user.result()) == tuple(shape) for user in value.users)


def _absorbs(value: Value, shape: Sequence[Size]) -> bool:
    """Whether reshapes of what an op takes are no more ops than one of its result: all but one of its operands come
    of a reshape or of a scalar, or are themselves ops of which that is true."""
    source = value.node
    if source is None:
        return False
    if source.name in RESHAPES or is_scalar(value):
        return True
    if source.name in SPREADS:
        return _dims_after_reshape(source, shape) is not None
    if source.name not in ELEMENTWISE or not _is_read_in(value, shape):
        return False
    left = [
        operand for operand in source.operands if not stays(operand, source) and not _absorbs_within(operand, shape)
    ]
    return len(set(left)) <= 1


def _absorbs_within(value: Value, shape: Sequence[Size]) -> bool:
    source = value.node
    if source is None or source.name not in ELEMENTWISE:
        return _absorbs(value, shape)
    operands = [operand for operand in source.operands if not stays(operand, source)]
    is_read_once = len(list(value.users)) == 1
    return is_read_once and all(_absorbs_within(operand, shape) for operand in operands)


def _dims_after_reshape(spread: Node, shape: Sequence[Size]) -> list[int] | None:
    """The dims of a shape along which the operand of a broadcast lies, once its result is reshaped to that; None
    where a dim would be made of its elements and of copies."""
    operand, dims = spread.operand(0), spread.integers("broadcast_dimensions")
    before = sizes_of(spread.result())
    groups = groups_of(before, shape)
    is_whole = all(size == before[dim] for size, dim in zip(sizes_of(operand), dims, strict=True))
    if groups is None or not is_whole or list(dims) != sorted(dims):
        return None
    kept: list[int] = []
    for left, right in groups:
        own = prod(before[dim] for dim in left if dim in dims)
        if own not in (1, prod(before[dim] for dim in left)):
            return None
        kept += [dim for dim in right if own != 1 and shape[dim] != 1]
    return kept


def _spread(build: Builder, spread: Node, shape: Sequence[Size]) -> Value | None:
    dims = _dims_after_reshape(spread, shape)
    if dims is None:
        return None
    return broadcast(build, reshape(build, spread.operand(0), [shape[dim] for dim in dims]), shape, dims)


def broadcast_once(build: Builder, node: Node) -> Value | None:
    """In one step, with dims in order, dims of extent 1 as `_units_placed` says; what spreads nothing is a reshape."""
    value, shape, dims = node.operand(0), sizes_of(node.result()), node.integers("broadcast_dimensions")
    if 0 in shape:
        return None
    if not shape:
        return value
    if not value.shape and not node.is_static:
        return None
    if not value.shape:
        is_kept = static_maker(value, CONSTANT) is None or value.element.is_complex
        return None if is_kept else filled_with(build, value, shape)
    if (scalar := scalar_at(build, value)) is not None:
        return filled_with(build, scalar, shape)
    sizes = sizes_of(value)
    order = sorted(range(len(dims)), key=lambda number: dims[number])
    if prod(sizes) == prod(shape):
        return reshape(build, build.transpose(value, order), shape)
    if order != sorted(order):
        return broadcast(build, value, shape, dims)
    inner = maker_named(value, *SPREADS)
    if inner is not None:
        within = inner.integers("broadcast_dimensions")
        return broadcast(build, inner.operand(0), shape, [dims[dim] for dim in within])
    long = [dim for dim, size in zip(dims, sizes, strict=True) if size != 1]
    maker = maker_named(value, *RESHAPES)
    source = value if maker is None or _long(maker.operand(0)) != _long(value) else maker.operand(0)
    placed = _units_placed(sizes_of(source), long, shape)
    if placed is not None:
        return None if source == value and placed == list(dims) else broadcast(build, source, shape, placed)
    if len(long) == len(sizes):
        return None
    return broadcast(build, reshape(build, value, _long(value)), shape, long)


def _long(value: Value) -> list[Size]:
    return [size for size in sizes_of(value) if size != 1]


def _units_placed(sizes: Sequence[Size], long: Sequence[int], shape: Sequence[Size]) -> list[int] | None:
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
