"""Values of two functions on the same arguments, a few elements of each: what is far apart there is not equal.

Alignment guesses which values are equal; a wrong guess is found where its region differs, but only when the region
reaches the function's arguments, after many runs of ever larger pieces. Both functions, run once with a few elements of
every value among their results, tell most wrong guesses together. Nothing rests on it: equalities that are left are
judged as any others, and where the functions themselves return what is apart it says nothing.
"""

from collections import defaultdict
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.align.piece import module_of
from hlo_lower.verify.bounds.compare import are_apart
from hlo_lower.verify.drive.index_regimes import REACH, SMALL, ordinary
from hlo_lower.verify.judges.devices import piece_executable
from hlo_lower.verify.judges.xla_errors import why_xla_errs_in
from hlo_lower.verify.read.large_constants import module_over_budget
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.read.program import Program, ValueId
from hlo_lower.verify.run import CannotRunError, read_signature

Array = NDArray[Any]

SAMPLED = 64
"""Elements of a value that are looked at."""

FAR = 1e-2
"""Of the largest magnitude of a sample: floats that differ by more are apart; roundings are far below."""


def values_apart(first: Program, second: Program, name: str) -> set[tuple[ValueId, ValueId]]:
    """Pairs of values of one type that a function of two modules does not have in common, and that are not equal.

    Args:
      first, second: the modules.
      name: the public function.

    Returns:
      None of them where the functions return what is apart, or cannot be run.
    """
    table = Table()
    sides = [Side(program, program.entries[name], 0, {}, table) for program in (first, second)]
    values = [_own(side, other) for side, other in (sides, sides[::-1])]
    try:
        seen = [_samples(side, [*side.body.returned, *own]) for side, own in zip(sides, values, strict=True)]
    except CannotRunError:
        return set()
    returned = len(sides[0].body.returned)
    if any(_are_apart(x, y) for x, y in zip(seen[0][:returned], seen[1][:returned], strict=True)):
        return set()
    by_type: list[dict[mlir.RawType, list[tuple[ValueId, list[Array]]]]] = []
    for side, own, samples in zip(sides, values, seen, strict=True):
        by_type.append(defaultdict(list))
        for value, sample in zip(own, samples[returned:], strict=True):
            by_type[-1][side.program.types[value]].append((value, sample))
    pairs = (pair for raw_type in by_type[0] for pair in product(by_type[0][raw_type], by_type[1][raw_type]))
    return {(x, y) for (x, mine), (y, theirs) in pairs if _are_apart(mine, theirs)}


def _own(side: Side, other: Side) -> list[ValueId]:
    """The tensors that one body has and the other has not."""
    values = [value for op in side.live if not op.has_effects for value in op.results]
    return [value for value in values if not other.has(side.numbers[value]) and _is_plain(side.program, value)]


def _is_plain(program: Program, value: ValueId) -> bool:
    tensor = program.type_of(value)
    return tensor is not None and tensor.is_static and program.dtype_of(value) is not None


def _samples(side: Side, values: list[ValueId]) -> list[list[Array]]:
    """A few elements of each value in each of two runs.

    Raises:
      CannotRunError: the function is not run.
    """
    program, arguments = side.program, dict(enumerate(side.body.arguments))
    types = [program.types[value] for value in side.body.arguments]
    own = {value: value for value in range(len(program.types))}
    module = mlir.parse_module(module_of(program, side.live, arguments, own, values, types), program.raw.context)
    if reason := module_over_budget(module) or why_xla_errs_in(module):
        raise CannotRunError(reason)
    _sample(module)
    text = mlir.print_module(module)
    run = piece_executable(text, "quick")
    results: list[list[Array]] = []
    for most in (SMALL, REACH):  # wide integers are out of bounds, and then much is NaN
        rng = np.random.default_rng(most)
        given = [_drawn(rng, a.shape, np.dtype(a.dtype), most) for a in read_signature(module).arguments]
        results.append(run.run(given))
    return [list(samples) for samples in zip(*results, strict=True)]


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], most: int) -> Array:
    return rng.integers(0, most, shape).astype(dtype) if dtype.kind in "iu" else ordinary(rng, shape, dtype)


def _sample(module: mlir.RawModule) -> None:
    """Return a few elements of each result in its place, evenly spread."""
    with mlir.active(module.context):
        main = module.body.operations[0].operation
        *_, end = (operation.operation for operation in main.regions[0].blocks[0].operations)
        for place, value in enumerate(list(end.operands)):
            count = prod(mlir.static_shape(value.type))
            if count > SAMPLED:
                beside, step = OpsBeside(end), count // SAMPLED
                end.operands[place] = beside.slice(beside.reshape(value, [count]), [0], [SAMPLED * step], step)
        mlir.set_signature(main)


def _are_apart(mine: list[Array], theirs: list[Array]) -> bool:
    """Whether samples of two values are no roundings of each other; what is not finite tells nothing."""
    return any(are_apart(one, other, FAR) for one, other in zip(mine, theirs, strict=True))
