"""Integers that hold each number below the size of a dim once along it: a sort has put them in order.

argsort(x) = sort((x, iota), by x)[1]      holds 0, 1, ..., n - 1 in some order in each row

It is so whatever the comparator says. What moves whole rows, or counts them from the other end, keeps it.
"""

from collections.abc import Callable, Sequence

from hlo_lower.base.element_types import element_type, type_range
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import BodyPair
from hlo_lower.verify.read.program import Op, Program, ValueId

MOST_STEPS = 64
"""Operations behind a value that are looked at."""

TOLD = "hlo_lower.in_order"
"""An attribute of an operation of which another version tells the dim."""

SOURCES = {names.IOTA: "iota_dimension"}
"""Operations that hold numbers in order, and their attribute that tells the dim."""

Ends = Callable[[ValueId], tuple[float, float]]
"""Between which numbers a value lies."""


def dim_in_order(program: Program, value: ValueId, ends: Ends) -> int | None:
    """The dim along which an array of integers holds each number below the dim's size once; None where none is seen.

    Args:
      program, value: the value, and the program that it stands in.
      ends: what is known of the truth values that choose.
    """
    moved = list[tuple[Op, ValueId]]()
    while len(moved) < MOST_STEPS and (maker := program.makers[value]) is not None:
        source = SOURCES.get(maker.name) if TOLD not in maker.raw.attributes else TOLD
        if source is not None:
            return _follow_dim(program, moved, mlir.integer_of(maker.raw.attributes[source]))
        behind = _behind(program, maker, value, ends)
        if behind is None:
            break
        moved.append((maker, behind))
        value = behind
    return None


def is_order(op: Op) -> bool:
    """Whether an operation puts numbers in order, as it says itself or another version does."""
    return op.name == names.SORT or TOLD in op.raw.attributes


def forget_orders(*modules: mlir.RawModule) -> bool:
    """Take away what the operations of modules say of another version themselves; whether any did."""
    told = list[mlir.RawOperation]()

    def look(op: mlir.RawOperation) -> bool:
        if TOLD in op.attributes:
            told.append(op)
        return False

    for module in modules:
        mlir.any_operation(module.operation, look)
    for op in told:
        del op.attributes[TOLD]
    return bool(told)


def orders_told(pairs: Sequence[BodyPair], ends: Ends) -> dict[mlir.RawOperation, int]:
    """Operations of the second version whose result is in order wherever they stand, as the first one shows, and the
    dim along which.

    Args:
      pairs: the aligned bodies of the functions.
      ends: as above, of values of the first version.
    """
    told: dict[Op, int | None] = {}
    for pair in pairs:
        for op in pair.second.body.ops:
            number = pair.second.numbers.get(op.results[0]) if len(op.results) == 1 else None
            its = None if number is None else pair.first.value_of.get(number)
            told[op] = None if its is None else dim_in_order(pair.first.program, its, ends)
    found: dict[mlir.RawOperation, set[int | None]] = {}
    for op in {op for pair in pairs for op in pair.second.program.makers if op is not None}:
        found.setdefault(op.raw, set()).add(told.get(op))
    return {op: dim for op, dims in found.items() for dim in dims if dim is not None and len(dims) == 1}


def _behind(program: Program, op: Op, value: ValueId, ends: Ends) -> ValueId | None:
    """The operand whose elements an op gives, each of them once or along further dims; None of another op."""
    if op.name == names.SORT:
        return op.inputs[op.results.index(value)]
    if op.name in (names.REVERSE, names.TRANSPOSE, names.RESHAPE, names.BROADCAST_IN_DIM):
        return op.inputs[0]
    if op.name == names.SLICE:
        return _operand_of_slice(program, op)
    if op.name == names.SELECT:
        least, most = ends(op.inputs[0])
        return op.inputs[1] if least == 1 else op.inputs[2] if most == 0 else None
    if op.name == names.CONVERT and _holds_positions(program, op):
        return op.inputs[0]
    return None


def _operand_of_slice(program: Program, op: Op) -> ValueId | None:
    """What a slice takes a part of: of operands one behind the other that which holds all of it."""
    maker = program.makers[op.inputs[0]]
    if maker is None or maker.name != names.CONCATENATE:
        return op.inputs[0]
    dim, before = mlir.integer_of(maker.raw.attributes["dimension"]), 0
    first, last = (mlir.integers_of(op.raw.attributes[name])[dim] for name in ("start_indices", "limit_indices"))
    for value in maker.inputs:
        behind = before + program.shape_of(value)[dim]
        if before <= first and last <= behind:
            return value
        before = behind
    return None


def _holds_positions(program: Program, op: Op) -> bool:
    """Whether a conversion is between integers that hold all positions of the result."""
    tensors = [program.type_of(value) for value in (op.inputs[0], op.results[0])]
    most = max(program.shape_of(op.results[0]), default=0)
    return all(
        tensor is not None
        and element_type(tensor.element_name).is_integer
        and most <= (type_range(tensor.element_name) or (0, 0))[1]
        for tensor in tensors
    )


def _follow_dim(program: Program, ops: list[tuple[Op, ValueId]], dim: int | None) -> int | None:
    """What becomes of a dim along which numbers are in order, from the last op, with what it moves, to the first."""
    for op, value in reversed(ops):
        if dim is None:
            return None
        before, after = program.shape_of(value), program.shape_of(op.results[0])
        if op.name == names.SORT:
            dim = dim if mlir.integer_of(op.raw.attributes["dimension"]) % len(after) == dim else None
        elif op.name == names.TRANSPOSE:
            dim = mlir.integers_of(op.raw.attributes["permutation"]).index(dim)
        elif op.name == names.BROADCAST_IN_DIM:
            to = mlir.integers_of(op.raw.attributes["broadcast_dimensions"])[dim]
            dim = to if after[to] == before[dim] else None
        elif op.name == names.SLICE:
            dim = dim if after[dim] == before[dim] else None
        elif op.name == names.RESHAPE:
            dim = _dim_after_reshape(before, after, dim)
    return dim


def _dim_after_reshape(before: tuple[int, ...], after: tuple[int, ...], dim: int) -> int | None:
    """The dim of a reshape's result that is a dim of its operand, where dims of size 1 alone come and go."""
    kept = [[d for d, size in enumerate(shape) if size != 1] for shape in (before, after)]
    if before[dim] == 1 or [before[d] for d in kept[0]] != [after[d] for d in kept[1]]:
        return None
    return kept[1][kept[0].index(dim)]
