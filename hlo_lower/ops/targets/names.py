"""The names in a target: each an operation or an element type that exists, so that a misspelt one restricts nothing."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

from hlo_lower.base.errors import InputError
from hlo_lower.ir import mlir
from hlo_lower.ops.targets.target import Target

NUMPY_NAMES = {"float": "f", "bfloat": "bf", "int": "i", "uint": "ui"}
"""What people write for element types, and how MLIR begins them."""

NEXT_STEP = 'write operations with their dialect ("stablehlo.while") and element types as MLIR does ("f32", "ui8")'


def check_names(target: Target, where: str) -> None:
    """Check that every operation and element type of a target exists, and that no entry contradicts another.

    Raises:
      InputError: one does not; the message says what may have been meant.
    """
    context = mlir.shared_context(0)
    for key, ops in (("ops", target.ops or ()), ("refused", target.refused), ("op_dtypes", target.op_dtypes)):
        for op in sorted(ops):
            if not context.is_registered_operation(op):
                raise InputError(where, f"{key}: there is no operation {op!r}", _suggestion(op), next_step=NEXT_STEP)
    for key, dtypes in _element_types(target):
        for dtype in sorted(dtypes):
            if mlir.dtype_of(dtype) is None:
                raise InputError(
                    where, f"{key}: there is no element type {dtype!r}", _meant_dtype(dtype), next_step=NEXT_STEP
                )
    _check_consistent(target, where)


def _element_types(target: Target) -> Iterator[tuple[str, Collection[str]]]:
    """The element types that a target names, with where it does."""
    yield "dtypes", target.dtypes or ()
    yield "refused_dtypes", target.refused_dtypes
    yield from ((f"op_dtypes: {op}", found) for op, found in sorted(target.op_dtypes.items()))
    for number, native in enumerate(target.keep, start=1):
        yield f"keep {number}: dtypes", native.dtypes or ()
        yield f"keep {number}: index_dtypes", native.index_dtypes or ()


def _check_consistent(target: Target, where: str) -> None:
    """Refuse entries that could never have an effect."""
    if both := _first(op for op in sorted(target.ops or ()) if op in target.refused):
        raise InputError(where, f"{both} is among ops and among refused", next_step="keep it in one of them")
    if both := _first(dtype for dtype in sorted(target.dtypes or ()) if dtype in target.refused_dtypes):
        raise InputError(where, f"{both} is among dtypes and among refused_dtypes", next_step="keep it in one of them")
    for op, dtypes in sorted(target.op_dtypes.items()):
        if target.refuses_op(op) is not None and op not in target.composites:
            raise InputError(
                where,
                f"op_dtypes: {op} is not accepted at all",
                next_step="add it to ops, or leave it out of op_dtypes",
            )
        if refused := _first(dtype for dtype in sorted(dtypes) if target.refuses_dtype(dtype) is not None):
            raise InputError(
                where,
                f"op_dtypes: {op}: {refused} is not accepted on any op",
                next_step="op_dtypes narrows: add it to dtypes, and narrow the other operations",
            )


def _first(found: Iterable[str]) -> str:
    return next(iter(found), "")


def _suggestion(op: str) -> str:
    """The operation that an unknown name may stand for, as a question."""
    context = mlir.shared_context(0)
    for dialect in ("stablehlo", "chlo", "func"):
        if context.is_registered_operation(f"{dialect}.{op}"):
            return f"did you mean {dialect}.{op}?"
    if not op.startswith("stablehlo."):
        return "an operation is named with its dialect"
    dialect = cast(Any, mlir.stablehlo)
    ops = {str(getattr(getattr(dialect, name), "OPERATION_NAME", "")) for name in dir(dialect)}
    close = difflib.get_close_matches(op, ops, n=1)
    return f"did you mean {close[0]}?" if close else ""


def _meant_dtype(dtype: str) -> str:
    """What may have been meant by a name that is not an element type."""
    letters = dtype.rstrip("0123456789")
    guess = "i1" if dtype in ("bool", "pred") else NUMPY_NAMES.get(letters, "?") + dtype[len(letters) :]
    return (
        f"did you mean {guess}?" if mlir.dtype_of(guess) is not None else "f32, bf16, i32, ui8, i1, complex<f32>, ..."
    )
