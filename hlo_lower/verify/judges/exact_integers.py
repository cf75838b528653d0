"""Integers that one piece alone computes in floats: right only where no number is larger than a float holds exactly.

No runs show that, however many: one sum of a certain parity may be the only one that is rounded. So a bound is sought,
from the ranges of the integers by a law for each operation; where it lies beyond the float's mantissa nothing is known.
"""

from collections.abc import Iterator, Sequence
from math import inf, prod

from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.verify.drive.ranges import Ranges
from hlo_lower.verify.read.program import Op, Program, ValueId, location_of, ops_within

KEPT = frozenset(
    {
        *(
            "abs",
            "broadcast_in_dim",
            "ceil",
            "clamp",
            "concatenate",
            "convert",
            "dynamic_slice",
            "dynamic_update_slice",
        ),
        *("floor", "gather", "maximum", "minimum", "negate", "pad", "reshape", "reverse", "round_nearest_afz"),
        *("round_nearest_even", "select", "slice", "sort", "transpose", "optimization_barrier"),
    }
)
"""Operations that give no larger magnitudes than they are given, and integers for integers."""


def rounded_integers(pieces: Sequence[tuple[Program, Ranges]]) -> Iterator[str]:
    """Where one of two pieces makes integers of floats that may be rounded integers, and the other one does not."""
    found = [list(_back(program, ranges)) for program, ranges in pieces]
    for mine, others in zip(found, found[::-1], strict=True):
        if not others:
            for op, bound in mine:
                if bound == inf:
                    yield f"the convert at {location_of(op.raw)}: whether its integers were rounded as floats"


def _back(program: Program, ranges: Ranges) -> Iterator[tuple[Op, float]]:
    """Conversions to integers of floats made of integers, and the floats' bound: infinite beyond exact ones."""
    bounds: dict[ValueId, float] = {}
    for op in ops_within(program.entries["main"].ops):
        dtypes = [program.dtype_of(v) for v in (*op.inputs, *op.results)]
        if not op.inputs or not op.results or any(dtype is None for dtype in dtypes):
            continue
        source, made = program.dtype_of(op.inputs[0]), program.dtype_of(op.results[0])
        if source is None or made is None:
            continue
        if op.short_name == "convert" and source.kind in "iub" and element_type_of(made).is_float:
            bound = max(map(abs, ranges.of(op.inputs[0])))
        elif not any(value in bounds for value in op.inputs):
            continue
        elif op.short_name == "convert" and made.kind in "iu":
            yield op, bounds[op.inputs[0]]
            continue
        elif element_type_of(made).is_float:
            bound = _bound(op, [bounds[v] if v in bounds else _constant(program, v) for v in op.inputs])
        else:
            continue
        bounds |= dict.fromkeys(op.results, bound if bound <= 2 << element_type_of(made).mantissa else inf)


def _constant(program: Program, value: ValueId) -> float:
    """The largest magnitude of a constant of whole numbers; infinite for other floats, which are no such integers."""
    dtype = program.dtype_of(value)
    if dtype is not None and not element_type_of(dtype).is_float:  # a condition, or where something lies
        return 0.0
    maker = program.makers[value]
    while maker is not None and maker.short_name in ("broadcast_in_dim", "reshape"):
        maker = program.makers[maker.inputs[0]]
    number = mlir.constant_value(maker.raw) if maker is not None and maker.name == "stablehlo.constant" else None
    if number is None or not number.size:
        return inf
    number = number.astype("float64")
    return float(abs(number).max()) if (number == number.round()).all() else inf


def _bound(op: Op, given: Sequence[float]) -> float:
    """The largest magnitude that an operation gives, sums of parts of it included."""
    if op.short_name in KEPT:
        return max(given)
    if op.short_name in ("add", "subtract"):
        return sum(given)
    if inf in given:
        return inf
    if op.short_name == "multiply":
        return prod(given)
    if op.short_name in ("dot_general", "convolution"):
        shapes = [mlir.static_shape(v.type) for v in (*op.raw.operands, *op.raw.results)]
        return given[0] * given[1] * _terms(op, *map(prod, shapes))
    inner = op.bodies[0].ops if op.short_name == "reduce" and len(op.results) == 1 else ()
    if len(inner) == 1 and inner[0].short_name == "add":
        shapes = [prod(mlir.static_shape(v.type)) for v in (op.raw.operands[0], op.raw.results[0])]
        return given[1] + given[0] * -(-shapes[0] // max(1, shapes[1]))
    return given[0] if len(inner) == 1 and inner[0].short_name in ("maximum", "minimum") else inf


def _terms(op: Op, first: int, second: int, made: int) -> int:
    """Products that a sum has, at most."""
    if op.short_name == "convolution":
        return min(first, second)
    numbers = mlir.dot_dimension_numbers(op.raw)
    shape, dims = mlir.static_shape(op.raw.operands[0].type), map(int, numbers.lhs_contracting_dimensions)
    return prod(shape[d] for d in dims)
