"""Pieces of few bits, evaluated for every input: equal for all of them is derived, and a difference is shown.

A piece that computes each element from the elements at its place is one function at all places. Where its inputs have
16 bits at a place in all (a bf16, two i8), 65,536 places hold everything that they may be. So both pieces are written
for one dim of as many places, and each is run once, by XLA as it judges regions and by StableHLO's interpreter.

The pieces are equal where both say so. XLA on a CPU takes subnormal floats for zeros, so it is no judge of a place at
which an input or a result is one; the interpreter alone is, there. Where both say that the pieces differ, the inputs of
such a place are a run of the region. Where they disagree nothing is known. An op whose floats each compiler rounds in
its own way (`tanh`) is not evaluated: the two would be equal, or not, in XLA alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import ELEMENTWISE, LAYOUT
from hlo_lower.verify.bounds.compare import is_inexact, is_same, wide
from hlo_lower.verify.judges.devices import piece_executable
from hlo_lower.verify.judges.interpreter import Interpreter, InterpreterError, why_interpreter_errs
from hlo_lower.verify.judges.judge import INEXACT
from hlo_lower.verify.judges.xla_defects import why_xla_aborts, why_xla_errs_in
from hlo_lower.verify.read.program import Program
from hlo_lower.verify.run import CannotRunError, read_signature

Array = NDArray[Any]

BITS = 16
"""Bits of all inputs at one place, up to which they are enumerated."""

MOST_WORK = 1 << 21
"""Elements that all ops of both pieces give, up to which they are evaluated: the interpreter takes a microsecond for
each."""


@dataclass(frozen=True)
class Evaluation:
    """What two pieces gave for every input.

    Attributes:
      is_equal: whether it was the same.
      inputs: where it was not, arguments of the pieces for which both judges say so; empty where they disagree.
    """

    is_equal: bool
    inputs: tuple[Array, ...] = ()


def evaluate_every_input(
    first: str, second: str, within: Mapping[int, tuple[int, int]], interpreter: Interpreter
) -> Evaluation | None:
    """Evaluate two pieces for every input; None if their ops or inputs do not allow it, or a judge is missing.

    Args:
      first, second: texts of two modules with a function @main of one signature.
      within: the least and the greatest value of inputs of integers, by place.
      interpreter: StableHLO's.
    """
    modules = [mlir.parse_module(text) for text in (first, second)]
    try:
        inputs = read_signature(modules[0]).arguments
    except CannotRunError:
        return None
    dtypes = [np.dtype(one.dtype) for one in inputs]
    bits = sum(element_type_of(dtype).bits for dtype in dtypes)
    if bits > BITS or not all(_write_for(module, 1 << bits) for module in modules):
        return None
    if sum(len(mlir.body_of(_main(module))) for module in modules) << bits > MOST_WORK:
        return None
    if any(why_xla_aborts(one) or why_xla_errs_in(one) or _is_misread(one) for one in modules):
        return None
    arguments = _every(dtypes)
    texts = [mlir.print_module(module) for module in modules]
    try:
        runs = [piece_executable(text).run(arguments) for text in texts]
        read = [interpreter.run(text, arguments) for text in texts]
    except (CannotRunError, InterpreterError):
        return None
    may_be = np.ones(1 << bits, np.bool_)
    for place, (low, high) in within.items():
        numbers = arguments[place].astype(np.int64)
        may_be &= (low <= numbers) & (numbers <= high)
    with np.errstate(invalid="ignore"):  # a NaN that signals
        is_flushed = np.any([_is_subnormal(one) for one in (*arguments, *read[0], *read[1])], axis=0)
        by_xla, by_interpreter = (may_be & ~_are_same(*results) for results in (runs, read))
    if not np.any(by_interpreter) and not np.any(by_xla & ~is_flushed):
        return Evaluation(is_equal=True)
    apart = np.flatnonzero(by_xla & by_interpreter)[:1]
    shown = (np.full(one.shape, a[apart], a.dtype) for one, a in zip(inputs, arguments, strict=True) if apart.size)
    return Evaluation(is_equal=False, inputs=tuple(shown))


# --- a piece for many places ---


def _main(module: mlir.RawModule) -> mlir.RawOperation:
    return module.body.operations[0].operation


def _write_for(module: mlir.RawModule, count: int) -> bool:
    """Write a piece for so many places, in place; False, and it is left half written, where it does not compute each
    element from those at its place, or what it computes is rounded freely.

    What is the same at all places may be spread in any way: it is where it is spread to.
    """
    if len(module.body.operations) > 1:
        return False
    values = list(_main(module).regions[0].blocks[0].arguments)
    uniform = {value for value in values if _is_one(value)}
    spread: list[mlir.RawOperation] = []
    with mlir.active(module.context):
        *ops, _ = mlir.body_of(_main(module))
        for op in ops:
            if len(op.results) != 1 or not mlir.is_static(op.results[0].type):
                return False
            [result], operands = op.results, list(op.operands)
            if uniform.issuperset(operands) or _is_one(result):
                uniform.add(result)
            if op.name == names.CONSTANT:
                if not mlir.is_splat(op):
                    return False
                made = mlir.tensor_type([count], mlir.tensor_element(result.type))
                op.attributes["value"] = mlir.resplat(op.attributes["value"], made)
            elif op.name in LAYOUT and result in uniform:
                spread.append(op)
                continue
            elif not _is_by_place(op):
                return False
            values.append(result)
        for op in spread:
            op.results[0].replace_all_uses_with(op.operands[0])
        mlir.discard(spread)
        for value in values:
            mlir.set_type(value, mlir.tensor_type([count], mlir.tensor_element(value.type)))
        mlir.set_signature(_main(module))
        return not mlir.verify_module(module)


def _is_one(value: mlir.RawValue) -> bool:
    return mlir.is_static(value.type) and prod(mlir.static_shape(value.type)) == 1


def _is_by_place(op: mlir.RawOperation) -> bool:
    """Whether an op computes each element from those at its place, and one right number of floats."""
    if not op.name.startswith("stablehlo.") or op.name not in ELEMENTWISE | {names.BITCAST_CONVERT}:
        return False
    elements = [element_type(mlir.tensor_element_name(value.type)) for value in (*op.operands, *op.results)]
    is_free = op.name in INEXACT and any(one.is_inexact for one in elements)
    return not is_free and not any(one.is_complex for one in elements)


def _is_misread(module: mlir.RawModule) -> bool:
    """Whether the interpreter is not a judge of a piece."""
    program = Program(module)
    body = program.entries["main"]
    return bool(why_interpreter_errs(program, body.ops, body.returned, "xla"))


# --- all inputs ---


def _every(dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
    """An array for each input, which have together at each place another one of all that they may be."""
    types = [element_type_of(dtype) for dtype in dtypes]
    numbers = np.arange(1 << sum(one.bits for one in types), dtype=np.uint32)
    found: list[Array] = []
    for one, dtype in zip(types, dtypes, strict=True):
        own, numbers = numbers & ((1 << one.bits) - 1), numbers >> one.bits
        if one.is_integer:
            found.append(np.asarray([one.wrap(int(n)) for n in own]).astype(dtype))
        else:
            found.append(own.astype(f"u{dtype.itemsize}").view(dtype))
    return found


def _is_subnormal(array: Array) -> NDArray[np.bool_]:
    size = np.abs(wide(array)) if is_inexact(array) else np.zeros(array.shape)
    return (size > 0) & (size < element_type_of(array.dtype).smallest)


def _are_same(first: Sequence[Array], second: Sequence[Array]) -> NDArray[np.bool_]:
    return np.all([is_same(*pair) for pair in zip(first, second, strict=True)], axis=0)
