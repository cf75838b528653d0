"""Sizes at which what a module computes of its sizes comes out otherwise: `n > 100`, `n * n > 5000`, `n % 8 == 0`.

Integer scalars that depend on sizes alone are computed for many sizes at a time, and of each comparison of them the
smallest size is sought at which it comes out less, equal and greater.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.ir.shapes.expressions import evaluate
from hlo_lower.ir.shapes.specification import Specification
from hlo_lower.verify.read.program import Op, Program, ValueId, location_of, ops_within

Array = NDArray[Any]

DENSE = 1 << 11
"""Sizes up to which each is looked at; then some of each magnitude, and what lies beside the module's constants."""

ORDER = {"less": -1, "equal": 0, "greater": 1}


def outcomes_of_sizes(
    module: mlir.RawModule, specification: Specification, usual: Mapping[str, int]
) -> Iterator[tuple[str, list[dict[str, int]]]]:
    """For each outcome of a comparison of sizes its name, and sizes that have it, those of few elements first.

    Args:
      module: the module.
      specification: of its arguments.
      usual: sizes that fit it; one of them is changed at a time.
    """
    program = Program(module)
    body = program.entries.get("main") or next(iter(program.entries.values()))
    comparisons = [op for op in ops_within(body.ops) if op.name == "stablehlo.compare"]
    if not comparisons:
        return
    given = _candidates(body.ops)
    found: dict[tuple[Op, str], list[dict[str, int]]] = {}
    for symbol in specification.symbols:
        computed = _Computed(program, specification, body.arguments, [{**usual, symbol: int(n)} for n in given])
        for op in comparisons:
            first, second = (computed.of(value) for value in op.inputs)
            if first is None or second is None:
                continue
            signs = np.broadcast_to(np.sign(np.asarray(first, object) - np.asarray(second, object)), given.shape)
            for outcome, sign in ORDER.items():
                sizes = ({**usual, symbol: int(n)} for n in given[signs == sign])
                found.setdefault((op, outcome), []).extend(sizes)
    for (op, outcome), sizes in found.items():
        if sizes:
            told = f"the compare at {location_of(op.raw)}: {outcome}"
            yield told, sorted(sizes, key=lambda choice: (choice != dict(usual), sum(choice.values())))


def _candidates(ops: Sequence[Op]) -> Array:
    """Sizes that are looked at."""
    found = set(range(1, DENSE))
    found.update(int(2 ** (k / 4)) for k in range(44, 124))
    for op in ops_within(ops):
        value = mlir.constant_value(op.raw) if op.name == "stablehlo.constant" and op.raw.results else None
        if value is not None and value.size == 1 and value.dtype.kind in "iu":
            number = abs(int(value.reshape(-1)[0]))
            found.update(n + k for n in (number, int(number**0.5), 2 * number) for k in (-1, 0, 1))
    return np.asarray(sorted(n for n in found if 0 < n < 1 << 31))


class _Computed:
    """Integer scalars of a module for many sizes at a time.

    Args:
      program: the module.
      specification: of its arguments.
      arguments: these.
      sizes: the sizes.
    """

    def __init__(
        self,
        program: Program,
        specification: Specification,
        arguments: Sequence[ValueId],
        sizes: Sequence[Mapping[str, int]],
    ) -> None:
        self._program, self._sizes = program, sizes
        self._dims = dict(zip(arguments, specification.dims, strict=False))
        self._known: dict[ValueId, Array | None] = {}

    def of(self, value: ValueId) -> Array | None:
        """What an integer scalar is at each of the sizes; None where it depends on something else."""
        if value not in self._known:
            self._known[value] = None
            maker = self._program.makers[value]
            tensor, dtype = self._program.type_of(value), self._program.dtype_of(value)
            is_one = tensor is not None and tensor.is_static and all(n == 1 for n in tensor.shape)
            if maker is not None and is_one and dtype is not None and dtype.kind in "iub":
                found = self._found(maker)
                with np.errstate(all="ignore"):
                    self._known[value] = None if found is None else np.asarray(found).astype(dtype)
        return self._known[value]

    def _found(self, op: Op) -> Array | None:
        if op.short_name == "get_dimension_size":
            return self._size(op)
        if op.short_name == "constant":
            value = mlir.constant_value(op.raw)
            return None if value is None else value.reshape(())
        given = [self.of(v) for v in op.inputs]
        known = [v for v in given if v is not None]
        return None if len(known) < len(given) else computed(op, known)

    def _size(self, op: Op) -> Array | None:
        dims = self._dims.get(op.inputs[0])
        if dims is None:
            return None
        expression = dims[mlir.integer_of(op.raw.attributes["dimension"])]
        place = f"arg{list(self._dims).index(op.inputs[0])}.{mlir.integer_of(op.raw.attributes['dimension'])}"
        try:
            return np.asarray(
                [choice[place] if place in choice else evaluate(expression, choice) for choice in self._sizes]
            )
        except (ValueError, KeyError):
            return None


def computed(op: Op, given: Sequence[Array]) -> Array | None:
    """What an operation on integers gives, element by element; None of an operation of which no law is known."""
    law = _LAWS.get(op.short_name)
    with np.errstate(all="ignore"):
        if op.short_name == "compare":
            direction = mlir.enum_value(op.raw.attributes["comparison_direction"])
            return np.asarray(_COMPARED[direction](given))
        return None if law is None else np.asarray(law(given))


def _quotient(a: Array, b: Array) -> Array:
    exact = np.asarray(b, object)
    safe = np.where((exact == 0) | (exact == -1), 1, exact)
    wide = np.asarray(a, object)
    found = abs(wide) // abs(safe) * np.sign(wide) * np.sign(safe)
    return np.where(exact == -1, np.asarray(np.negative(a), object), found)  # of the least number the same


_COMPARED: Mapping[str, Callable[[Sequence[Array]], Any]] = {
    "EQ": lambda g: np.equal(g[0], g[1]),
    "NE": lambda g: np.not_equal(g[0], g[1]),
    "LT": lambda g: np.less(g[0], g[1]),
    "LE": lambda g: np.less_equal(g[0], g[1]),
    "GT": lambda g: np.greater(g[0], g[1]),
    "GE": lambda g: np.greater_equal(g[0], g[1]),
}
_LAWS: Mapping[str, Callable[[Sequence[Array]], Any]] = {
    "add": lambda g: np.add(g[0], g[1]),
    "subtract": lambda g: np.subtract(g[0], g[1]),
    "multiply": lambda g: np.multiply(g[0], g[1]),
    "negate": lambda g: np.negative(g[0]),
    "abs": lambda g: np.abs(g[0]),
    "sign": lambda g: np.sign(g[0]),
    "maximum": lambda g: np.maximum(g[0], g[1]),
    "minimum": lambda g: np.minimum(g[0], g[1]),
    "and": lambda g: np.bitwise_and(g[0], g[1]),
    "or": lambda g: np.bitwise_or(g[0], g[1]),
    "xor": lambda g: np.bitwise_xor(g[0], g[1]),
    "not": lambda g: np.invert(g[0]),
    "divide": lambda g: _quotient(g[0], g[1]),
    "remainder": lambda g: np.fmod(g[0], np.where(g[1] == 0, 1, g[1])),
    "select": lambda g: np.where(g[0], g[1], g[2]),
    "clamp": lambda g: np.minimum(np.maximum(g[1], g[0]), g[2]),
    "convert": lambda g: g[0],
    "reshape": lambda g: g[0],
    "broadcast_in_dim": lambda g: g[0],
}
"""Of integer scalars what an operation gives."""
