"""How closely a consumer's results have to agree with XLA's: bit for bit where nothing is rounded, else within a bound.

Another compiler sums in another order, contracts a product and a sum into one operation, and has its own exponential:
a float that is computed anew may differ by a few roundings of the largest number around it. Integers, booleans, and
floats that are only moved from place to place may not differ at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlo_lower import mlir
from hlo_lower.consumers.outcome import Array
from hlo_lower.verify.compare import (
    Difference,
    epsilon,
    first_difference,
    first_difference_within,
    largest_magnitude,
)
from hlo_lower.verify.module import DEFAULT_LEVEL_UNITS
from hlo_lower.verify.run import entry_function

COARSEST = 2.0**-5
"""The most that a float may differ, as a part of its result's largest magnitude: for the narrow types, of which 4,096
machine epsilons are more than the number itself. 4 of bf16's epsilons, 32 of f16's."""

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("constant", "iota", "reshape", "transpose", "broadcast_in_dim", "slice", "dynamic_slice", "reverse"),
        *("dynamic_update_slice", "concatenate", "pad", "gather", "select", "convert", "compare", "return"),
        *("while", "case", "if", "optimization_barrier", "scatter", "get_dimension_size", "real_dynamic_slice"),
        *("dynamic_reshape", "dynamic_broadcast_in_dim", "dynamic_iota", "dynamic_pad", "dynamic_gather"),
    )
) | {"func.call", "func.return"}
"""Ops that make no new float of their own (a convert rounds in one way only); what is in their regions counts, too.
Not minimum and maximum, which differ in the sign of a zero."""


@dataclass(frozen=True)
class Rounding:
    """How the results of a module are compared.

    Attributes:
      exact: for each result, whether it is compared bit for bit.
      epsilon: of the coarsest float type that the module computes in, 0 where it has none.
    """

    exact: tuple[bool, ...]
    epsilon: float = 0.0

    def difference(self, expected: Sequence[Array], actual: Sequence[Array]) -> Difference | None:
        """The first difference between XLA's results and a consumer's, None where they agree."""
        if len(expected) != len(actual):
            return Difference(0, (), f"{len(expected)} results", f"{len(actual)} results", 1, "signature")
        for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
            taken = _as_the_type_of(a, b)
            if number < len(self.exact) and self.exact[number]:
                found = first_difference([a], [taken])
            else:
                found = first_difference_within([a], [taken], self.units_of(a), [largest_magnitude(a)])
            if found is not None:
                return Difference(number, found.index, found.expected, found.actual, found.count, found.what)
        return None

    def units_of(self, result: Array) -> int:
        """The bound, in machine epsilons of the result's type."""
        if not _is_float(result.dtype):
            return 0
        own = epsilon(result.dtype)
        return max(int(min(DEFAULT_LEVEL_UNITS * max(self.epsilon, own), COARSEST) / own), 1)

    @property
    def told(self) -> str:
        """The bound in words."""
        part = min(DEFAULT_LEVEL_UNITS * self.epsilon, COARSEST)
        if not self.epsilon or all(self.exact):
            return "bit for bit"
        bound = f"floats that are computed within {part:.1e} of the largest magnitude of their result"
        return f"{bound}, as another compiler sums in another order; all else bit for bit"


def rounding_of(module: mlir.RawModule) -> Rounding:
    """Look through a module's text for what it rounds: the results of its entry point, and its coarsest float type."""
    functions = {
        mlir.symbol_name(op.operation.attributes["sym_name"]): op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    body = entry_function(module).regions[0].blocks[0].operations
    exact = tuple(_is_moved(value, functions) for value in body[len(body) - 1].operands)
    coarsest = 0.0

    def visit(op: mlir.RawOperation) -> None:
        nonlocal coarsest
        for value in op.results:
            dtype = _dtype(value)
            if dtype is not None and _is_float(dtype):
                coarsest = max(coarsest, epsilon(dtype))

    mlir.walk(module.operation, visit)
    return Rounding(exact, coarsest)


def _is_moved(value: mlir.RawValue, functions: dict[str, mlir.RawOperation]) -> bool:
    """Whether no op that a value depends on rounds."""
    pending, seen = [value], set[mlir.RawOperation]()
    while pending:
        value = pending.pop()
        op = value.owner.owner.operation if mlir.is_block_argument(value) else value.owner.operation
        if op.name == "func.func" or op in seen:
            continue
        inner: list[mlir.RawOperation] = []
        mlir.walk(op, inner.append)
        entered = set[str]()
        for one in inner:
            if one.name == "func.call" and (name := mlir.symbol_name(one.attributes["callee"])) not in entered:
                entered.add(name)
                mlir.walk(functions[name], inner.append)
        if any(_rounds(one) for one in inner):
            return False
        seen.update(inner)
        pending.extend(v for one in inner for v in one.operands)
    return True


def _rounds(op: mlir.RawOperation) -> bool:
    """Whether an op makes a float that was not there before."""
    return op.name not in _MOVES and any(_is_float_value(value) for value in (*op.results, *op.operands))


def _is_float_value(value: mlir.RawValue) -> bool:
    dtype = _dtype(value)
    return dtype is not None and _is_float(dtype)


def _dtype(value: mlir.RawValue) -> "np.dtype[Any] | None":
    """The element type of a tensor, None where NumPy has none, or it is no tensor."""
    tensor = mlir.read_tensor_type(value.type)
    return None if tensor is None else mlir.dtype_of(tensor.element_name)


def _is_float(dtype: "np.dtype[Any]") -> bool:
    """Whether a type rounds; ml_dtypes' types are of kind V or f, its narrow integers too."""
    return dtype.kind in "fcV" and not dtype.name.startswith(("int", "uint"))


def _as_the_type_of(expected: Array, actual: Array) -> Array:
    """The consumer's array as the type that it stands for: some have no unsigned integers, or hold a bool as a byte."""
    if actual.dtype == expected.dtype or actual.dtype.itemsize != expected.dtype.itemsize:
        return actual
    both = {actual.dtype.kind, expected.dtype.kind}
    return actual.view(expected.dtype) if both <= set("iub") or "V" in both else actual
