"""Integers of a piece that depend on no input, computed and written as constants: positions that a model makes of iotas
by counting and sorting, where a rule writes the positions themselves.

XLA computes them as it judges regions, and StableHLO's interpreter does. Where the two disagree, or one is no judge of
the operations, the piece stays as it is.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ELEMENTWISE, LAYOUT, PICKS
from hlo_lower.verify.align.piece import module_of
from hlo_lower.verify.judges.devices import piece_executable
from hlo_lower.verify.judges.interpreter import Interpreter, InterpreterError, why_interpreter_errs
from hlo_lower.verify.judges.xla_defects import why_xla_aborts, why_xla_errs_in
from hlo_lower.verify.read.program import Op, Program, TooLargeError, ValueId, ops_within
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

COUNTING = frozenset({names.REDUCE, names.REDUCE_WINDOW, names.SCATTER, names.SORT, names.DOT_GENERAL})
"""Operations that make an element of many others: without one the laws of the others say as much."""

EXACT_ON_FLOATS = LAYOUT | {names.CONSTANT, names.IOTA, names.SELECT, names.COMPARE, names.CONVERT}
"""Operations that round no float, or as everyone does."""

EXACT = (
    EXACT_ON_FLOATS
    | ELEMENTWISE
    | PICKS
    | COUNTING
    | {names.CONCATENATE, names.PAD, names.DYNAMIC_UPDATE_SLICE, names.BITCAST_CONVERT, names.RETURN}
)
"""Operations of which integers are the same on each device and at each time."""

MOST_ELEMENTS = 1 << 12
"""Elements of one value up to which it is written as a constant."""

MOST_WORK = 1 << 20
"""Elements that all of them combine, up to which they are evaluated: the interpreter takes a microsecond for each."""


def with_computed_positions(text: str, interpreter: Interpreter) -> str | None:
    """A module in which integers that depend on no argument are constants; None where it has none that are counted.

    Args:
      text: a module with one function, @main.
      interpreter: StableHLO's.
    """
    module = mlir.parse_module(text)
    if len(module.body.operations) > 1:
        return None
    try:
        program = Program(module)
    except TooLargeError:
        return None
    body = program.entries["main"]
    makers = _without_inputs(program, body.ops)
    read = {value for op in body.ops if op not in makers for value in op.reads} | set(body.returned)
    counted = _counted(makers)
    wanted = [v for op in makers for v in op.results if v in read & counted and _is_integer(program, v)]
    if not wanted or any(_elements(program, value) > MOST_ELEMENTS for value in wanted):
        return None
    needed = _needed(makers, wanted)
    if sum(_work(program, op) for op in needed) > MOST_WORK:
        return None
    values = _evaluated(program, needed, wanted, interpreter)
    if values is None:
        return None
    raw = {value: own for op in makers for value, own in zip(op.results, op.raw.results, strict=True)}
    with mlir.active(module.context):
        block = module.body.operations[0].operation.regions[0].blocks[0]
        point, location = mlir.insert_at_begin(block), mlir.unknown_location(module.context)
        for value, array in zip(wanted, values, strict=True):
            kind = raw[value].type
            attributes = {"value": mlir.dense_attribute(array, kind)}
            made = mlir.create_operation(
                names.CONSTANT, [], [kind], attributes, location=location, insertion_point=point
            )
            raw[value].replace_all_uses_with(made.results[0])
        return mlir.print_module(module)


def _without_inputs(program: Program, ops: Sequence[Op]) -> list[Op]:
    """The operations, in order, that depend on no input and have one right result."""
    found, known = list[Op](), set[ValueId]()
    for op in ops:
        if known.issuperset(op.reads) and _is_exact(program, op):
            found.append(op)
            known.update(op.results)
    return found


def _is_exact(program: Program, op: Op) -> bool:
    """Whether an operation has one right result that it surely gives soon."""
    for inner in ops_within([op]):
        types = [program.type_of(value) for value in inner.results]
        if inner.name not in EXACT or any(tensor is None or not tensor.is_static for tensor in types):
            return False
        is_whole = all(tensor and element_type(tensor.element_name).is_integer for tensor in types)
        if not is_whole and inner.name not in EXACT_ON_FLOATS:
            return False
    return True


def _counted(makers: Sequence[Op]) -> set[ValueId]:
    """The values that are computed with one of the operations that count."""
    found = set[ValueId]()
    for op in makers:
        if op.name in COUNTING or not found.isdisjoint(op.reads):
            found.update(op.results)
    return found


def _needed(makers: Sequence[Op], wanted: Sequence[ValueId]) -> list[Op]:
    """Those of the operations, in order, by which some values are computed."""
    found, reads = list[Op](), set(wanted)
    for op in reversed(makers):
        if not reads.isdisjoint(op.results):
            found.append(op)
            reads.update(op.reads)
    return found[::-1]


def _is_integer(program: Program, value: ValueId) -> bool:
    """Whether a value holds truths, or integers of whole bytes."""
    tensor = program.type_of(value)
    kind = element_type(tensor.element_name) if tensor is not None else None
    return kind is not None and kind.is_integer and (kind.bits == 1 or kind.bits % 8 == 0)


def _work(program: Program, op: Op) -> int:
    """About as many elements as an operation combines."""
    given, read = (sum(_elements(program, value) for value in values) for values in (op.results, op.inputs))
    return given * read if op.name in (names.REDUCE_WINDOW, names.DOT_GENERAL) else given + read


def _elements(program: Program, value: ValueId) -> int:
    tensor = program.type_of(value)
    return prod(size or 0 for size in tensor.shape) if tensor is not None else 0


def _evaluated(
    program: Program, ops: Sequence[Op], wanted: Sequence[ValueId], interpreter: Interpreter
) -> list[Array] | None:
    """The values that both judges compute; None where they disagree, or one is no judge."""
    numbers = {value: value for op in ops for value in op.results}
    try:
        text = module_of(program, ops, {}, numbers, wanted, [])
        alone = mlir.parse_module(text)
        if why_xla_aborts(alone) or why_xla_errs_in(alone) or why_interpreter_errs(program, ops, wanted, "xla"):
            return None
        by_xla, read = piece_executable(text).run([]), interpreter.run(text, [])
    except (CannotRunError, InterpreterError):
        return None
    return read if all(map(np.array_equal, by_xla, read)) else None
