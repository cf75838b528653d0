"""Widen a region: take producers of its inputs in, until the pieces agree or begin at the function's arguments.

A rule that rests on a fact (a start that is clamped, an index that is an iota) writes a piece that is right only for
the inputs that can come. Such pieces differ as they stand. With the producers inside they have to agree; and the runs
of the wider pieces are aimed at what made the narrow ones differ: the narrow inputs of the runs that failed are sought
at the cut, by giving them to the wide inputs and correcting those by what came out (`Sought`).
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.verify.align.align import Assumption, Region, Side
from hlo_lower.verify.drive.driven_runs import Run, runs_of
from hlo_lower.verify.drive.input_roles import Roles
from hlo_lower.verify.read.constant_folding import is_splat
from hlo_lower.verify.read.numbering import Number
from hlo_lower.verify.read.program import Op, ValueId

Array = NDArray[Any]

CORRECTIONS = 3
"""How often a wide input is corrected by what came out at the cut."""

FAILURES_SOUGHT = 8
"""Narrow runs that are sought."""

FAILURES_SOLVED = 4
"""Narrow runs of which each value at the cut is solved for the wide inputs."""

MORE_SEEDS = 2
"""Further drawings of the driven inputs of a wide region."""


def widened(region: Region, steps: int, *, integers_only: bool, across: bool = False) -> Region | None:
    """A region with the producers of its inputs inside, some steps of them; None where no input has one.

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
    """The operations around a region's bodies as a region; None at a function's own body."""
    if region.pair.around is None:
        return None
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


def begun_at_arguments(region: Region) -> Region:
    """A region with all producers of its inputs inside, but those that have effects."""
    side = region.pair.first
    made = ((number, side.program.makers[value]) for value, number in side.numbers.items())
    opened = {number for number, maker in made if maker is not None and not maker.has_effects}
    return Region(region.pair, region.outputs, region.opened | opened)


def with_constants(narrow: Region, wide: Region) -> Region:
    """A narrow region with all inside that a wider one computes from nothing that it takes."""
    side, found = wide.pair.first, set[ValueId]()
    for op in wide.first:
        if not op.has_effects and found.issuperset(op.reads):
            found.update(op.results)
    return Region(narrow.pair, narrow.outputs, narrow.opened | {side.numbers[value] for value in found})


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
    if op.name == "stablehlo.select":
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
        self._special = [run.is_special for run in failures[:FAILURES_SOUGHT]]

    def next(self, case: Any) -> Iterator[Run]:
        """The runs; `case` says what is at the cut (`hlo_lower.verify.judges.judge`)."""
        roles: Roles = case.roles
        drawn = list(runs_of(roles, [self._seed, 1], meeting=False))
        behind = [_inputs_behind(self._wide, number) for number in self._seen]
        for failure, is_special in zip(self._failures, self._special, strict=True):
            base = self._with_shared(drawn[0].arguments, failure)
            for k, run in enumerate(drawn[: 2 * FAILURES_SOUGHT]):  # what both regions take stays as it failed
                yield Run(f"sought {k}", self._with_shared(run.arguments, failure), is_special)
            for place, role in enumerate(roles.inputs):
                if role.values is None and role.dtype.kind in "iuf":
                    for slot, number in enumerate(self._seen):
                        if number in failure and self._wide.inputs[place] in behind[slot]:
                            yield from self._aimed(case, base, place, slot, failure[number], is_special)
        for failure, is_special in zip(self._failures[:FAILURES_SOLVED], self._special, strict=False):
            from_these = [Run("", self._with_shared(run.arguments, failure), is_special) for run in drawn[:2]]
            for slot, number in enumerate(self._seen):
                if number in failure and behind[slot]:
                    yield from case.reaching(slot, failure[number], from_these)
        for extra in range(MORE_SEEDS):
            yield from runs_of(roles, [self._seed, 2 + extra], meeting=False)

    def _with_shared(self, arguments: Sequence[Array], failure: dict[Number, Array]) -> list[Array]:
        """Drawn inputs, with those that the narrow region takes, too, as they were when it failed."""
        return [failure.get(n, a) for n, a in zip(self._wide.inputs, arguments, strict=True)]

    def _aimed(
        self, case: Any, base: Sequence[Array], place: int, slot: int, target: Array, is_special: bool
    ) -> Iterator[Run]:
        """Runs that try to make a value at the cut a target by one wide input."""
        given = base[place]
        for aim in _targets(target, given.shape):
            tried = _cast(aim, given.dtype).reshape(given.shape)
            for _ in range(CORRECTIONS):
                arguments = [*base[:place], tried, *base[place + 1 :]]
                yield Run("sought at the cut", arguments, is_special)
                watched = case.watched(arguments)
                if slot >= len(watched):
                    return
                there = np.asarray(watched[slot])
                if there.dtype.kind not in "iu" or tried.dtype.kind not in "iu":
                    break
                missing = np.asarray(np.asarray(target, object) - np.asarray(there, object))  # of scalars it is an int
                if not np.any(missing):
                    break
                if missing.size == tried.size:
                    step = missing.reshape(tried.shape)
                elif tried.size == 1:
                    step = np.full(tried.shape, missing.reshape(-1)[0], object)
                else:
                    break
                tried = _cast(np.asarray(tried, object) + step, tried.dtype)


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
    wrapped = np.asarray(np.asarray(array, object) % (1 << 8 * dtype.itemsize), object)
    return wrapped.astype(np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
