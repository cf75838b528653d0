"""Each gather alone, where the target does not take it: converted alone, and driven beyond its bounds.

The judges are XLA on the gather as it stood and, where that is quick, our NumPy reference; both bit for bit. Alone, a
gather's indices are an argument, so one that is proved in bounds where it stands is judged with a clamp all the same.

XLA clamps by itself, so a second version whose gathers lack a clamp would run like the first. That the second version
is what the converter makes of the first, gathers included, is therefore asked for (`hlo_lower.verify.verify`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower import mlir
from hlo_lower.errors import HloLowerError
from hlo_lower.gather.reference import GatherNumbers, gather
from hlo_lower.verify.compare import first_difference
from hlo_lower.verify.cutout import location_of
from hlo_lower.verify.inputs import ordinary, with_special_values
from hlo_lower.verify.run import CannotRunError, Executable, bytes_of
from hlo_lower.verify.verdict import GatherVerdict

Array = NDArray[Any]

GATHER = "stablehlo.gather"

REGIMES = ("in range", "first and last", "one past the end", "negative", "far out", "mixed")

MAX_REFERENCED = 4096
"""Elements of a result up to which the reference, a Python loop, judges."""

BUDGET = 1 << 28
"""Bytes of operand and indices up to which a gather is run: 256 MiB."""


@dataclass(frozen=True)
class _Alone:
    """Gathers that are alike, as a module of one."""

    text: str
    numbers: GatherNumbers
    window: tuple[int, ...]
    where: str


def verify_gathers(module: mlir.RawModule, convert: Callable[[str], str], *, seed: int) -> GatherVerdict | None:
    """Judge every gather that the converter changes.

    Args:
      module: the version that holds them.
      convert: lowers the text of a module; it is given each distinct gather alone, its indices an argument.
      seed: of the inputs.

    Returns:
      The verdict; None where the converter changes none.
    """
    distinct = 0
    left_out: list[str] = []
    for alone in _alone(module):
        try:
            after = convert(alone.text)
            if GATHER in after and _is_same(alone.text, after):
                continue
            distinct += 1
            difference = _judge(alone, after, np.random.default_rng([seed, distinct]))
        except (HloLowerError, CannotRunError) as error:
            told = error.what if isinstance(error, HloLowerError) else str(error)
            left_out.append(f"{alone.where}: {told}")
            continue
        if difference:
            return GatherVerdict("differs", distinct, len(REGIMES), f"{alone.where}: {difference}")
    if not distinct and not left_out:
        return None
    return GatherVerdict("equal", distinct, len(REGIMES), "", tuple(left_out))


def _judge(alone: _Alone, after: str, rng: np.random.Generator) -> str:
    """The first difference, "" where there is none."""
    versions = [Executable(text, "exact") for text in (alone.text, after)]
    needed = bytes_of(versions[0].arguments)
    if needed > BUDGET:
        raise CannotRunError(f"{needed / 2**20:,.0f} MiB of operand and indices")
    operand_type, indices_type = versions[0].arguments
    for regime in REGIMES:
        operand = with_special_values(rng, ordinary(rng, operand_type.shape, np.dtype(operand_type.dtype)))
        indices = _indices(rng, regime, alone, operand.shape, indices_type.shape, np.dtype(indices_type.dtype))
        expected, found = (version.run([operand, indices]) for version in versions)
        judged = [("XLA", expected)]
        if expected[0].size <= MAX_REFERENCED:
            judged.append(("reference", [gather(operand, indices, alone.numbers, alone.window)]))
        for judge, values in judged:
            difference = first_difference(values, found)
            if difference is not None:
                return f"{regime}, judged by {judge}: {difference}"
    return ""


def _indices(
    rng: np.random.Generator,
    regime: str,
    alone: _Alone,
    shape: Sequence[int],
    of: Sequence[int],
    dtype: np.dtype[Any],
) -> Array:
    """Indices of a regime, saturated to their type."""
    vector, components = alone.numbers.index_vector_dim, alone.numbers.start_index_map
    limits = np.asarray([shape[d] - alone.window[d] for d in components], object)
    if vector < len(of):
        limits = limits.reshape([-1 if d == vector else 1 for d in range(len(of))])
    limits = np.broadcast_to(limits if limits.size != 1 or vector < len(of) else limits[0], of)
    low, high = _range(dtype)
    share, half = rng.random(of), rng.random(of) < 0.5
    ends = np.asarray([low, high], object)  # Python's integers: no type of NumPy holds those of i64 and ui64 alike
    drawn = {
        "in range": np.floor(share * (limits + 1).astype(np.float64)).astype(np.int64).astype(object),
        "first and last": np.where(half, 0, limits),
        "one past the end": limits + 1,
        "negative": -1 - np.floor(share * 3).astype(np.int64).astype(object),
        "far out": ends[half.astype(int)],
    }
    if regime == "mixed":
        values = np.choose(rng.integers(0, len(drawn), of), [np.asarray(v, object) for v in drawn.values()])
    else:
        values = drawn[regime]
    return np.asarray(np.minimum(np.maximum(values, low), high), object).astype(dtype).reshape(of)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The least and the greatest value of an integer type, by its name: NumPy has no iinfo of the narrow ones."""
    bits = int(dtype.name.lstrip("uint"))
    return (0, (1 << bits) - 1) if dtype.name.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _alone(module: mlir.RawModule) -> Iterator[_Alone]:
    """The gathers of static shape, alike ones once."""
    texts: dict[str, list[mlir.RawOperation]] = {}

    def visit(op: mlir.RawOperation) -> None:
        if op.name == GATHER and all(_is_static(v.type) for v in (*op.operands, *op.results)):
            texts.setdefault(_as_module(op), []).append(op)

    mlir.walk(module.operation, visit)
    for text, ops in texts.items():
        first = ops[0]
        numbers = GatherNumbers.read(str(first.attributes["dimension_numbers"]))
        yield _Alone(text, numbers, mlir.integers_of(first.attributes["slice_sizes"]), location_of(first))


def _as_module(op: mlir.RawOperation) -> str:
    """A module of this gather alone, of its operand and its indices."""
    operand, indices, result = (str(v.type) for v in (*op.operands, *op.results))
    names = ("dimension_numbers", "slice_sizes", "indices_are_sorted")
    attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in names if name in op.attributes)
    return (
        f"func.func public @main(%o: {operand}, %i: {indices}) -> {result} {{\n"
        f'  %r = "stablehlo.gather"(%o, %i) <{{{attributes}}}> : ({operand}, {indices}) -> {result}\n'
        f"  return %r : {result}\n}}\n"
    )


def _is_static(raw_type: mlir.RawType) -> bool:
    read = mlir.read_tensor_type(raw_type)
    return read is not None and read.is_static


def _is_same(before: str, after: str) -> bool:
    """Whether two modules are the same, printed alike."""
    printed = [mlir.print_module(mlir.parse_module(text, mlir.make_context())) for text in (before, after)]
    return printed[0] == printed[1]
