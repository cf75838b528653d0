"""Evaluate a scatter's update computation with NumPy, for the reference.

Each op rounds to its own type, as XLA does without excess precision (`rounded_arithmetic`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.judges.reference.rounded_arithmetic import BITWISE, FLOAT, UnsupportedRegionError, apply
from hlo_lower.verify.judges.reference.scatter import Combine
from hlo_lower.verify.read.partitions import is_note

Array = NDArray[Any]


def combine_of(scatter: mlir.RawOperation, functions: Mapping[str, mlir.RawOperation]) -> Combine:
    """The update computation of a scatter on NumPy windows; whether an underflow raises is left to the caller.

    Raises:
      UnsupportedRegionError: when called, if the region has an op without a NumPy form here.
    """
    block = scatter.regions[0].blocks[0]

    def combine(currents: list[Array], updates: list[Array]) -> list[Array]:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return _run(block, [*currents, *updates], functions)

    return combine


_APPLIED = frozenset({*FLOAT, *BITWISE, "select"})
"""Ops that are computed on whole arrays."""

_EXACT_OPS = _APPLIED | {"compare", "convert", "constant", "return", "sqrt", "sign"}


def rounds_correctly(scatter: mlir.RawOperation, functions: Mapping[str, mlir.RawOperation]) -> bool:
    """Whether every op of a region, and of the functions that it calls, has one right result.

    Transcendental functions have not, nor products of complex numbers, whose parts are sums that may be contracted.
    """
    names: set[str] = set()
    seen: set[str] = set()

    def visit(op: mlir.RawOperation) -> None:
        if op.name == "func.call":
            name = mlir.symbol_name(op.attributes["callee"])
            if name not in seen and name in functions:
                seen.add(name)
                mlir.walk(functions[name], visit)
        elif op.name not in ("stablehlo.scatter", "func.func", "func.return"):
            name = op.name.removeprefix("stablehlo.")
            is_complex = any("complex" in str(v.type) for v in op.operands)
            names.add(f"complex {name}" if is_complex and name in ("multiply", "divide") else name)

    mlir.walk(scatter, visit)
    return names <= _EXACT_OPS


def check_region(scatter: mlir.RawOperation, functions: Mapping[str, mlir.RawOperation]) -> None:
    """Run a region once on ones.

    Raises:
      UnsupportedRegionError: it has an op, a type or a captured value that this evaluator does not know.
    """
    arguments: list[Array] = []
    for argument in scatter.regions[0].blocks[0].arguments:
        dtype = mlir.dtype_of(mlir.tensor_element_name(argument.type))
        if dtype is None:
            raise UnsupportedRegionError(f"element type {argument.type}")
        arguments.append(np.ones((), dtype))
    with np.errstate(all="ignore"):
        _run(scatter.regions[0].blocks[0], arguments, functions)


def _run(block: mlir.RawBlock, arguments: list[Array], functions: Mapping[str, mlir.RawOperation]) -> list[Array]:
    values: dict[Any, Array] = dict(zip(block.arguments, arguments, strict=True))
    shape = arguments[0].shape
    for operation in block.operations:
        op = operation.operation
        missing = [v for v in op.operands if v not in values]
        for value in missing:
            values[value] = _captured(value, shape)
        inputs = [values[v] for v in op.operands]
        name = op.name.removeprefix("stablehlo.")
        if name in ("return", "func.return"):
            return inputs
        values.update(zip(op.results, _results(op, name, inputs, shape, functions), strict=True))
    raise UnsupportedRegionError("a region without a terminator")


def _results(
    op: mlir.RawOperation,
    name: str,
    inputs: list[Array],
    shape: tuple[int, ...],
    functions: Mapping[str, mlir.RawOperation],
) -> list[Array]:
    if name == "func.call":
        callee = functions.get(mlir.symbol_name(op.attributes["callee"]))
        if callee is None:
            raise UnsupportedRegionError("a call to an unknown function")
        return _run(callee.regions[0].blocks[0], inputs, functions)
    if name == "constant":
        return [_constant(op, shape)]
    if is_note(op):
        return inputs
    if name == "compare":
        name = f"compare {mlir.enum_value(op.attributes['comparison_direction'])}"
    if name in _APPLIED or name.startswith("compare "):
        return [apply(name, inputs[-1].dtype, inputs)]
    if name == "convert":
        dtype = mlir.dtype_of(mlir.tensor_element_name(op.results[0].type))
        if dtype is None or (inputs[0].dtype.kind == "f" and dtype.kind in "iu"):
            raise UnsupportedRegionError(f"convert to {op.results[0].type}")
        return [inputs[0] != 0 if dtype == np.bool_ else inputs[0].astype(dtype)]
    raise UnsupportedRegionError(f"{op.name} in the region")


def _constant(op: mlir.RawOperation, shape: tuple[int, ...]) -> Array:
    value = mlir.constant_value(op)
    if value is None or value.shape != ():
        raise UnsupportedRegionError("a constant without a NumPy form")
    return np.broadcast_to(value, shape)


def _captured(value: mlir.RawValue, shape: tuple[int, ...]) -> Array:
    if not mlir.is_block_argument(value) and value.owner.name == "stablehlo.constant":
        return _constant(value.owner.operation, shape)
    raise UnsupportedRegionError("the region captures a value")
