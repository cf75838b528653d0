"""Where the indices of a scatter come from, so that the facts that a rule is for are proved of them.

A producer gives the arguments and the lines of a module that make indices %j of a form's shape.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from hlo_lower.proving.family_forms import FamilyForm, typed
from hlo_lower.scatter.facts import InBounds, Offsets, Parts, Unique
from hlo_lower.subset import Subset

ONE = frozenset({Subset.TILE, Subset.POINT, Subset.FULL})
SEVERAL = frozenset({Subset.FILTER, Subset.POINTS, Subset.WINDOWS})
BATCHES = SEVERAL | {Subset.BATCHED_TILE}
RUN = ONE | {Subset.ROWS}
NOTHING = frozenset({Subset.EMPTY})
ANYTHING = frozenset(Subset)

ANY_OFFSETS = frozenset(Offsets)
AT_RUN_TIME = frozenset({Offsets.RUNTIME})
KNOWN = ANY_OFFSETS - AT_RUN_TIME


@dataclass(frozen=True)
class Indices:
    """Indices %j of a scatter, and what may be found of them.

    Attributes:
      name: for messages.
      arguments: name and type of each argument that they are made of.
      lines: operations.
      subsets: what a scatter at them can be; of rules for nothing else nothing is tried.
      offsets, in_bounds, parts, unique: the same of other facts; None of in_bounds and unique: anything.
      is_example: whether rules that do not ask for its facts are tried on it, too.
      flags: attributes of the scatter.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    lines: str
    subsets: frozenset[Subset]
    offsets: frozenset[Offsets] = ANY_OFFSETS
    in_bounds: InBounds | None = None
    parts: Parts = Parts.ONE
    unique: Unique | None = None
    flags: str = ""
    is_example: bool = True


Producer = Callable[[FamilyForm, str], Iterator[Indices]]


def _dense(values: Any) -> str:
    return str(np.asarray(values).tolist()) if np.size(values) else ""


def _along(form: FamilyForm, values: Sequence[int], index: str, name: str) -> str:
    """A constant of the indices' shape with one value for each component."""
    if form.vector == "implied":
        spread = np.full(form.indices, values[0])
    else:
        shape = [form.components if d == form.vector_dim else 1 for d in range(len(form.indices))]
        spread = np.broadcast_to(np.asarray(values).reshape(shape), form.indices)
    return f"{name} = stablehlo.constant dense<{_dense(spread)}> : {typed(form.indices, index)}"


def _subsets(form: FamilyForm) -> frozenset[Subset]:
    if prod(form.positions) == 1:
        return ONE
    return BATCHES if form.is_batched else SEVERAL


def runtime(form: FamilyForm, index: str) -> Iterator[Indices]:
    """An argument, of which nothing is known; and the same with the flag that no element is written twice."""
    kind = typed(form.indices, index)
    yield Indices("runtime", (("%j", kind),), "", _subsets(form), AT_RUN_TIME, unique=Unique.UNKNOWN)
    if prod(form.positions) > 1:
        flags = "unique_indices = true, "
        yield Indices(
            "claimed unique",
            (("%j", kind),),
            "",
            _subsets(form),
            AT_RUN_TIME,
            unique=Unique.PROVED,
            flags=flags,
            is_example=False,
        )


def clamped(form: FamilyForm, index: str) -> Iterator[Indices]:
    """An argument brought into bounds."""
    if min(form.limits) < 0:
        return
    kind = typed(form.indices, index)
    lines = [
        _along(form, [0] * form.components, index, "%low"),
        _along(form, form.limits, index, "%high"),
        f"%j = stablehlo.clamp %low, %i, %high : {kind}",
    ]
    subsets = _subsets(form) if max(form.limits) else ANYTHING  # a start that is always 0 makes windows of one place
    yield Indices("clamped", (("%i", kind),), "\n".join(lines), subsets, in_bounds=InBounds.ALWAYS)


def outside(form: FamilyForm, index: str) -> Iterator[Indices]:
    """An argument brought to where nothing is."""
    kind = typed(form.indices, index)
    sizes = [form.operand[d] for d in form.indexed]
    lines = [
        _along(form, sizes, index, "%low"),
        _along(form, [size + 2 for size in sizes], index, "%high"),
        f"%j = stablehlo.clamp %low, %i, %high : {kind}",
    ]
    yield Indices("outside", (("%i", kind),), "\n".join(lines), NOTHING, in_bounds=InBounds.NEVER, is_example=False)


def normalized(form: FamilyForm, index: str) -> Iterator[Indices]:
    """An argument whose negative values count from the end."""
    kind, truths = typed(form.indices, index), typed(form.indices, "i1")
    lines = [
        _along(form, [form.operand[d] for d in form.indexed], index, "%size"),
        _along(form, [0] * form.components, index, "%zero"),
        f"%moved = stablehlo.add %i, %size : {kind}",
        f"%below = stablehlo.compare LT, %i, %zero, SIGNED : ({kind}, {kind}) -> {truths}",
        f"%j = stablehlo.select %below, %moved, %i : {truths}, {kind}",
    ]
    yield Indices("normalized", (("%i", kind),), "\n".join(lines), _subsets(form), AT_RUN_TIME)


def constant(form: FamilyForm, index: str) -> Iterator[Indices]:
    """Constants: ascending, descending, every second one, all the same, crossed, and some out of bounds."""
    count = prod(form.positions)
    if len(form.positions) > 1:
        return
    starts = {
        "ascending": range(count),
        "descending": range(count)[::-1],
        "every second": range(0, 2 * count, 2),
        "the same": [1] * count,
        "from -1": range(-1, count - 1),
        "crossed": [2 * n % 3 for n in range(count)],
        "down and out": [1, 0, 9][:count],
    }
    for name, own in starts.items():
        if not count or (count == 1 and name not in ("ascending", "the same", "from -1")):
            continue
        rows = np.array([[start] * form.components for start in own]).reshape((*form.positions, -1))
        if form.components == 2 and name in ("ascending", "crossed"):
            rows[..., -1] = 0
        values = rows[..., 0] if form.vector == "implied" else np.moveaxis(rows, -1, form.vector_dim)
        text = f"%j = stablehlo.constant dense<{_dense(values)}> : {typed(form.indices, index)}"
        yield Indices(f"constant, {name}", (), text, ANYTHING, KNOWN, is_example=name == "crossed" or count == 1)


def run(form: FamilyForm, index: str) -> Iterator[Indices]:
    """A run of rows at a runtime base: up, down, and with negative ones from the end."""
    if form.components != 1 or len(form.positions) != 1 or form.vector != "last" or not form.positions[0]:
        return
    [count], size = form.positions, form.operand[form.indexed[0]]
    kind, truths = typed((count,), index), typed((count,), "i1")
    start = (
        f"%iota = stablehlo.iota dim = 0 : {kind}\n"
        f"%base = stablehlo.broadcast_in_dim %i, dims = [] : ({typed((), index)}) -> {kind}\n"
    )
    end = f"\n%j = stablehlo.reshape %x : ({kind}) -> {typed(form.indices, index)}"
    argument = (("%i", typed((), index)),)
    yield Indices("run", argument, f"{start}%x = stablehlo.add %base, %iota : {kind}{end}", RUN)
    yield Indices("run down", argument, f"{start}%x = stablehlo.subtract %base, %iota : {kind}{end}", RUN)
    wrapped = (
        f"%y = stablehlo.add %base, %iota : {kind}\n"
        f"%size = stablehlo.constant dense<{size}> : {kind}\n"
        f"%zero = stablehlo.constant dense<0> : {kind}\n"
        f"%moved = stablehlo.add %y, %size : {kind}\n"
        f"%below = stablehlo.compare LT, %y, %zero, SIGNED : ({kind}, {kind}) -> {truths}\n"
        f"%x = stablehlo.select %below, %moved, %y : {truths}, {kind}"
    )
    yield Indices("wrapped run", argument, start + wrapped + end, RUN, parts=Parts.SEVERAL)


def per_batch(form: FamilyForm, index: str) -> Iterator[Indices]:
    """A column that counts the batch, and one of runtime values."""
    if form.components != 2 or form.vector != "last" or form.positions != form.operand[:1] or form.indexed[0]:
        return
    column = typed((*form.positions, 1), index)
    lines = (
        f"%b = stablehlo.iota dim = 0 : {column}\n"
        f"%j = stablehlo.concatenate %b, %i, dim = 1 : ({column}, {column}) -> {typed(form.indices, index)}"
    )
    yield Indices("per batch", (("%i", column),), lines, BATCHES | ONE, AT_RUN_TIME)


def ordered(form: FamilyForm, index: str) -> Iterator[Indices]:
    """Runtime values in ascending order; and the order of runtime values, which is a permutation."""
    if form.components != 1 or len(form.positions) != 1 or form.positions[0] < 2 or form.vector != "last":
        return
    kind, scalar = typed(form.positions, index), typed((), index)
    compared = f"stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar}) -> tensor<i1>"
    end = f"\n%j = stablehlo.reshape %x : ({kind}) -> {typed(form.indices, index)}"
    lines = (
        f'%x = "stablehlo.sort"(%i) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}):\n %l = {compared}\n stablehlo.return %l : tensor<i1>\n"
        f"}}) : ({kind}) -> {kind}{end}"
    )
    yield Indices("sorted", (("%i", kind),), lines, SEVERAL, AT_RUN_TIME)
    lines = (
        f"%numbers = stablehlo.iota dim = 0 : {kind}\n"
        f'%order:2 = "stablehlo.sort"(%i, %numbers) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}, %y: {scalar}, %z: {scalar}):\n"
        f" %l = {compared}\n stablehlo.return %l : tensor<i1>\n"
        f"}}) : ({kind}, {kind}) -> ({kind}, {kind})\n"
        f"%j = stablehlo.reshape %order#1 : ({kind}) -> {typed(form.indices, index)}"
    )
    yield Indices("permutation", (("%i", kind),), lines, SEVERAL, AT_RUN_TIME, unique=Unique.PROVED)


def sorted_by_run(form: FamilyForm, index: str) -> Iterator[Indices]:
    """Rows that ascend along one scatter dim, a run of columns along the other: in bounds, and in both orders."""
    if len(form.positions) != 2 or form.vector != "last":
        return
    scalar, column = typed((), index), typed((*form.positions, 1), index)
    for dim in (0, 1):
        rows, columns = (typed((form.positions[d],), index) for d in (dim, 1 - dim))
        lines = (
            f"%zero = stablehlo.constant dense<0> : {scalar}\n"
            f"%last = stablehlo.constant dense<{form.operand[0] - 1}> : {scalar}\n"
            f"%most = stablehlo.constant dense<{form.operand[1] - form.positions[1 - dim]}> : {scalar}\n"
            f"%inside = stablehlo.clamp %zero, %i, %last : ({scalar}, {rows}, {scalar}) -> {rows}\n"
            f'%rows = "stablehlo.sort"(%inside) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
            f"^bb0(%a: {scalar}, %b: {scalar}):\n"
            f" %l = stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar}) -> tensor<i1>\n"
            f" stablehlo.return %l : tensor<i1>\n}}) : ({rows}) -> {rows}\n"
            f"%base = stablehlo.clamp %zero, %first, %most : {scalar}\n"
            f"%bases = stablehlo.broadcast_in_dim %base, dims = [] : ({scalar}) -> {columns}\n"
            f"%iota = stablehlo.iota dim = 0 : {columns}\n%run = stablehlo.add %bases, %iota : {columns}\n"
            f"%x = stablehlo.broadcast_in_dim %rows, dims = [{dim}] : ({rows}) -> {column}\n"
            f"%y = stablehlo.broadcast_in_dim %run, dims = [{1 - dim}] : ({columns}) -> {column}\n"
            f"%j = stablehlo.concatenate %x, %y, dim = 2 : ({column}, {column}) -> {typed(form.indices, index)}"
        )
        name = f"sorted by run, rows along dim {dim}"
        yield Indices(name, (("%i", rows), ("%first", scalar)), lines, SEVERAL, AT_RUN_TIME, InBounds.ALWAYS)


PRODUCERS: tuple[Producer, ...] = (
    *(runtime, clamped, outside, normalized, constant, run),
    *(per_batch, ordered, sorted_by_run),
)
"""Every way in which the family makes indices."""
