"""What alignment guessed wrongly: regions that differ are widened, and values that are far apart are told."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, python_integers
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.verify.align.align import Assumption, Region, Side
from hlo_lower.verify.align.appended_ops import OpsBeside
from hlo_lower.verify.align.piece import module_of
from hlo_lower.verify.bounds.compare import are_apart, which_are_apart
from hlo_lower.verify.drive.driven_runs import Run, runs_of
from hlo_lower.verify.drive.input_roles import REACH, SMALL, Roles, ordinary
from hlo_lower.verify.judges.devices import piece_executable
from hlo_lower.verify.judges.xla_defects import why_xla_errs_in
from hlo_lower.verify.read.meanings import is_splat
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Op, Program, ValueId
from hlo_lower.verify.run import CannotRunError, module_over_budget, read_signature

# --- widening ---
#
# Widen a region: take producers of its inputs in, until the pieces agree or begin at the function's arguments.
#
# A rule that rests on a fact (a start that is clamped, an index that is an iota) writes a piece that is right only for
# the inputs that can come. Such pieces differ as they stand. With the producers inside they have to agree; and the runs
# of the wider pieces are aimed at what made the narrow ones differ: the narrow inputs of the runs that failed are
# sought at the cut, by giving them to the wide inputs and correcting those by what came out (`Sought`).

Array = NDArray[Any]

CORRECTIONS = 3
"""How often a wide input is corrected by what came out at the cut."""

FAILURES_SOUGHT = 8
"""Narrow runs that are sought."""

FAILURES_SOLVED = 4
"""Narrow runs of which each value at the cut is solved for the wide inputs."""

MORE_SEEDS = 2
"""Further drawings of the driven inputs of a wide region."""


def widen_region(region: Region, steps: int, *, integers_only: bool, across: bool = False) -> Region | None:
    """The region together with some of the ops that produce its inputs; None if no input has a producer.

    Args:
      region: the region.
      steps: how many times producers are taken in.
      integers_only: whether only integers and booleans are computed within.
      across: whether producers that stand around the region's bodies are taken in, too.
    """
    current = region
    for _ in range(steps):
        opened = [n for n in current.inputs if _may_open(current, n, integers_only=integers_only, across=across)]
        if not opened:
            break
        current = Region(current.pair, current.outputs, current.opened | set(opened))
    return None if current is region else current


def enclosing(region: Region) -> Region | None:
    """The operations around a region's bodies as a region; None at a function's own body, or one with effects."""
    if region.pair.around is None or region.pair.around[1].has_effects:
        return None  # what an operation with effects gives is an input of the region around it: nothing would be judged
    outer, op, other = region.pair.around
    outputs: list[Assumption] = []
    for x, y in zip(op.results, other.results, strict=True):
        if x in outer.first.users or x in outer.first.root_places:
            places = outer.first.root_places.get(x, [])
            roots = outer.second.roots
            root = next((f"result {p}" for p in places if p < len(roots) and roots[p] == y), "")
            outputs.append(Assumption(x, y, root))
    return Region(outer, tuple(outputs), frozenset()) if outputs else None


def _may_open(region: Region, number: Number, *, integers_only: bool, across: bool) -> bool:
    for side in (region.pair.first, region.pair.second):
        value = side.value_of.get(number)
        maker = None if value is None else side.program.makers[value]
        if value is None or maker is None or maker.has_effects or not (across or side.is_own(value)):
            continue
        tensor = side.program.type_of(value)
        if not integers_only or (tensor is not None and element_type(tensor.element_name).is_integer):
            return True
    return False


def cut(narrow: Region, wide: Region) -> list[Number]:
    """The inputs of a narrow region that a wider one computes in its first piece."""
    made = {wide.pair.first.numbers[r] for op in wide.first for r in op.results}
    return [number for number in narrow.inputs if number in made and number not in wide.inputs]


def depends(wide: Region, number: Number) -> bool:
    """Whether a value within the first piece depends on an input of it."""
    return bool(_inputs_behind(wide, number))


def _inputs_behind(wide: Region, number: Number) -> set[Number]:
    """The inputs on which a value within the first piece depends."""
    side = wide.pair.first
    given, found = set(wide.inputs) - {number}, set[Number]()
    inside = {r: op for op in wide.first for r in op.results}
    pending, seen = [r for r in inside if side.numbers[r] == number], set[int]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if side.numbers[value] in given:
            found.add(side.numbers[value])
        elif value in inside:
            pending.extend(_read_of(inside[value], side))
    return found


def _read_of(op: Op, side: Side) -> Sequence[ValueId]:
    """What the results of an op depend on: of a choice that is known only what is chosen (a condition known to JAX)."""
    if op.name == names.SELECT:
        told = side.table.known.get(side.numbers[op.inputs[0]])
        if told is not None and is_splat(told):
            return [op.inputs[1 if told.flat[0] else 2]]
    return op.reads


class Sought:
    """Runs of a wide region that seek, at the cut, the inputs on which the narrow one differed.

    Args:
      narrow: the narrow region.
      failures: its runs that failed.
      wide: the wide region.
      seen: the numbers at the cut, in the order in which they are watched.
      seed: of further drawings.
    """

    def __init__(
        self, narrow: Region, failures: Sequence[Run], wide: Region, seen: Sequence[Number], seed: int
    ) -> None:
        self._wide, self._seen, self._seed = wide, list(seen), seed
        self._failures = [dict(zip(narrow.inputs, run.arguments, strict=True)) for run in failures[:FAILURES_SOUGHT]]
        self._failed = failures[:FAILURES_SOUGHT]

    def sought_arrays(self) -> list[tuple[dict[str, Array], tuple[bool, bool]]]:
        """The arrays of each failed run, keyed by their place in the wide region, and whether they hold special values
        and large ones."""
        places = [*((n, f"input {k}") for k, n in enumerate(self._wide.inputs)),
                  *((n, f"cut {k}") for k, n in enumerate(self._seen))]  # fmt: skip
        found = ({place: failure[n] for n, place in places if n in failure} for failure in self._failures)
        return list(zip(found, ((run.is_special, run.is_large) for run in self._failed), strict=True))

    def next(self, case: Any) -> Iterator[Run]:
        """The runs; `case` says what is at the cut (`hlo_lower.verify.judges.judge`)."""
        roles: Roles = case.roles
        drawn = list(runs_of(roles, [self._seed, 1], meeting=False))
        behind = [_inputs_behind(self._wide, number) for number in self._seen]
        for failure, failed in zip(self._failures, self._failed, strict=True):
            base = self._with_shared(drawn[0], failure, failed)
            for k, run in enumerate(drawn[: 2 * FAILURES_SOUGHT]):  # what both regions take stays as it failed
                yield replace(self._with_shared(run, failure, failed), aim=f"sought {k}")
            for place, role in enumerate(roles.inputs):
                if role.values is None and role.dtype.kind in "iuf":
                    for slot, number in enumerate(self._seen):
                        if number in failure and self._wide.inputs[place] in behind[slot]:
                            yield from self._aim_runs(case, base, place, slot, failure[number])
        for failure, failed in zip(self._failures[:FAILURES_SOLVED], self._failed, strict=False):
            from_these = [self._with_shared(run, failure, failed) for run in drawn[:2]]
            for slot, number in enumerate(self._seen):
                if number in failure and behind[slot]:
                    yield from case.reaching(slot, failure[number], from_these)
        for extra in range(MORE_SEEDS):
            yield from runs_of(roles, [self._seed, 2 + extra], meeting=False)

    def _with_shared(self, run: Run, failure: dict[Number, Array], failed: Run) -> Run:
        """A run of drawn inputs, with those that the narrow region takes, too, as they were when it failed."""
        arguments = [failure.get(n, a) for n, a in zip(self._wide.inputs, run.arguments, strict=True)]
        return Run("", arguments, failed.is_special, run.is_large or failed.is_large)

    def _aim_runs(self, case: Any, base: Run, place: int, slot: int, target: Array) -> Iterator[Run]:
        """Runs that change one input of the wide region until a value at the cut equals the target."""
        given = base.arguments[place]
        for aim in _targets(target, given.shape):
            tried = _cast(aim, given.dtype).reshape(given.shape)
            for _ in range(CORRECTIONS):
                arguments = [*base.arguments[:place], tried, *base.arguments[place + 1 :]]
                yield replace(base, aim="sought at the cut", arguments=arguments)
                watched = case.run_watched(arguments)
                if slot >= len(watched):
                    return
                there = np.asarray(watched[slot])
                if there.dtype.kind not in "iu" or tried.dtype.kind not in "iu":
                    break
                missing = np.asarray(python_integers(target) - python_integers(there))  # of scalars it is an int
                if not np.any(missing):
                    break
                if missing.size == tried.size:
                    step = missing.reshape(tried.shape)
                elif tried.size == 1:
                    step = np.full(tried.shape, missing.reshape(-1)[0], object)
                else:
                    break
                tried = _cast(python_integers(tried) + step, tried.dtype)


def _targets(target: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """What a wide input of a shape is given to make a value at the cut the target."""
    size = prod(shape)
    flat = np.asarray(target).reshape(-1)
    if flat.size == size:
        yield flat.reshape(shape)
    elif flat.size and size:
        yield np.resize(flat, size).reshape(shape)
    for value in list(dict.fromkeys(flat.tolist()))[:4] if size else []:
        yield np.full(shape, value, flat.dtype)


def _cast(values: Any, dtype: np.dtype[Any]) -> Array:
    """Numbers in a type, integers modulo its size, of complex ones the real part."""
    array = np.real(np.asarray(values))
    with np.errstate(all="ignore"):
        if dtype.kind not in "iu":
            return np.asarray(array, np.float64).astype(dtype)
        if array.dtype.kind not in "iuO":
            return np.nan_to_num(np.asarray(array, np.float64)).astype(np.int64).astype(dtype)
    if not array.size:
        return np.zeros(array.shape, dtype)
    wrapped = np.asarray(python_integers(array) % (1 << 8 * dtype.itemsize), object)
    return wrapped.astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)


# --- samples ---
#
# Values of two functions on the same arguments, a few elements of each: what is far apart there is not equal.
#
# Alignment guesses which values are equal; a wrong guess is found where its region differs, but only when the region
# reaches the function's arguments, after many runs of ever larger pieces. Both functions, run once with a few elements
# of every value among their results, tell most wrong guesses together. Nothing rests on it: equalities that are left
# are judged as any others, and where the functions themselves return what is apart it says nothing.


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
    found = set[tuple[ValueId, ValueId]]()
    for raw_type in by_type[0].keys() & by_type[1].keys():
        theirs = by_type[1][raw_type]
        stacks = [np.stack(run) for run in zip(*(samples for _, samples in theirs), strict=True)]
        for x, mine in by_type[0][raw_type]:
            apart = np.any([which_are_apart(one, stack, FAR) for one, stack in zip(mine, stacks, strict=True)], 0)
            found |= {(x, theirs[k][0]) for k in np.flatnonzero(apart)}
    return found


def _own(side: Side, other: Side) -> list[ValueId]:
    """The tensors that one body has and the other has not."""
    values = [value for op in side.live if not op.has_effects for value in op.results]
    types = {value: side.program.type_of(value) for value in values if side.program.dtype_of(value) is not None}
    return [v for v, tensor in types.items() if tensor and tensor.is_static and not other.has(side.numbers[v])]


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
        given = [_draw(rng, a.shape, np.dtype(a.dtype), most) for a in read_signature(module).arguments]
        results.append(run.run(given))
    return [list(samples) for samples in zip(*results, strict=True)]


def _draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], most: int) -> Array:
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
