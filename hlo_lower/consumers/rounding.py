"""How closely a consumer's results have to agree with XLA's: bit for bit where nothing is rounded, else within bounds.

Another compiler sums in another order, contracts a product and a sum into one operation, and has its own exponential:
a float that is computed anew may be off by as much as its own computation moves under roundings
(`rounding_bounds`), each element by its own. Results that nothing rounded reaches, integers, booleans, and floats
that are only moved from place to place, may not differ at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.consumers.consumer_outcome import Array
from hlo_lower.ir import mlir
from hlo_lower.ops.names import COMPARE, CONVERT, SCATTER, SELECT
from hlo_lower.ops.spec import CONSTANTS, CONTROL, MOVES, Role, ops_with
from hlo_lower.verify.bounds.compare import Difference, first_difference, first_difference_beyond
from hlo_lower.verify.run import entry_function

Limits: TypeAlias = Callable[[], Sequence[Array]]
"""Makes the bounds of each result's elements, where they are needed."""

_MOVES = (
    (MOVES | CONSTANTS | CONTROL | ops_with(role=Role.ENDS) | ops_with(role=Role.TUPLES) | ops_with(role=Role.SIZES))
    | {SELECT, CONVERT, COMPARE, SCATTER}
    | {"func.call", "func.return"}
)
"""Ops that make no new float of their own (a convert rounds in one way only); what is in their regions counts, too.
Not minimum and maximum, which differ in the sign of a zero."""


@dataclass(frozen=True)
class Rounding:
    """How the results of a module are compared."""

    exact: tuple[bool, ...]  # for each result, whether it is compared bit for bit

    def difference(
        self, expected: Sequence[Array], actual: Sequence[Array], limits: Limits | None = None
    ) -> Difference | None:
        """The first difference between XLA's results and a consumer's, of which inexact ones may be off within
        limits, if given."""
        if len(expected) != len(actual):
            return Difference(0, (), f"{len(expected)} results", f"{len(actual)} results", 1, "signature")
        for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
            taken = _as_the_type_of(a, b)
            found = first_difference([a], [taken])
            is_exact = number < len(self.exact) and self.exact[number]
            if found is not None and found.what != "types" and not is_exact and limits is not None:
                found = first_difference_beyond([a], [taken], [limits()[number]])
            if found is not None:
                return Difference(number, found.index, found.expected, found.actual, found.count, found.what)
        return None

    @property
    def description(self) -> str:
        """The comparison in words."""
        if all(self.exact):
            return "bit for bit"
        return "each computed float within the bound of its own rounding; all else bit for bit"


def rounding_of(module: mlir.RawModule) -> Rounding:
    """Look through a module's text for which results of its entry point may be rounded."""
    functions = {
        mlir.symbol_name(op.operation.attributes["sym_name"]): op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    body = entry_function(module).regions[0].blocks[0].operations
    return Rounding(tuple(_is_moved(value, functions) for value in body[len(body) - 1].operands))


def _is_moved(value: mlir.RawValue, functions: dict[str, mlir.RawOperation]) -> bool:
    pending, seen = [value], set[mlir.RawOperation]()
    while pending:
        value = pending.pop()
        op = value.owner.owner.operation if mlir.is_block_argument(value) else value.owner.operation
        if op.name == "func.func" or op in seen:
            continue
        inner, entered = mlir.operations_within(op), set[str]()
        for one in inner:
            if one.name == "func.call" and (name := mlir.symbol_name(one.attributes["callee"])) not in entered:
                entered.add(name)
                inner += mlir.operations_within(functions[name])
        if any(_rounds(one) for one in inner):
            return False
        seen.update(inner)
        pending.extend(v for one in inner for v in one.operands)
    return True


def _rounds(op: mlir.RawOperation) -> bool:
    return op.name not in _MOVES and any(_is_float_value(value) for value in (*op.results, *op.operands))


def _is_float_value(value: mlir.RawValue) -> bool:
    tensor = mlir.read_tensor_type(value.type)
    return tensor is not None and element_type(tensor.element_name).is_inexact


def _as_the_type_of(expected: Array, actual: Array) -> Array:
    """The consumer's array as the type that it stands for: some have no unsigned integers, hold a bool as a byte, or
    complex numbers as their two parts along a last dim."""
    if expected.dtype.kind == "c" and actual.shape == (*expected.shape, 2) and actual.dtype.kind == "f":
        return np.ascontiguousarray(actual).view(expected.dtype)[..., 0]
    if actual.dtype == expected.dtype or actual.dtype.itemsize != expected.dtype.itemsize:
        return actual
    both = {actual.dtype.kind, expected.dtype.kind}
    return actual.view(expected.dtype) if both <= set("iub") or "V" in both else actual
