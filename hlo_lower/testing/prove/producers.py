"""Where the indices of a scatter come from, so that the facts that a rule is for are proved of them.

A producer gives a form the columns of its index tensor (`hlo_lower.testing.fuzz.index_columns`), and where no column
is of that kind the lines by which an argument is made of others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

from hlo_lower.facts.scatter.facts import InBounds, Offsets, Parts, Unique
from hlo_lower.ops.subset import Subset
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.drawn_types import typed
from hlo_lower.testing.fuzz.index_columns import DrawnColumn, Treatment
from hlo_lower.testing.prove.family_forms import is_vector_last

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
class Made:
    """How an argument of a module is made of another one.

    Attributes:
      name: of what is made; an argument of the module as it is written.
      source, kind: the argument that takes its place, and its type.
      lines: operations on `source` that give `name`.
    """

    name: str
    source: str
    kind: str
    lines: str


@dataclass(frozen=True)
class Indices:
    """Indices of a scatter, and what may be found of them.

    Attributes:
      name: for messages.
      form: the scatter's, with the columns of its indices.
      subsets: what a scatter at them can be; of rules for nothing else nothing is tried.
      offsets, in_bounds, parts, unique: the same of other facts; None of in_bounds and unique: anything.
      is_example: whether rules that do not ask for its facts are tried on it, too.
      flags: attributes of the scatter.
      made: arguments that are made of others.
    """

    name: str
    form: CaseForm
    subsets: frozenset[Subset]
    offsets: frozenset[Offsets] = ANY_OFFSETS
    in_bounds: InBounds | None = None
    parts: Parts = Parts.ONE
    unique: Unique | None = None
    flags: str = ""
    is_example: bool = True
    made: tuple[Made, ...] = ()


Producer = Callable[[CaseForm, str], Iterator[Indices]]


def _treated(form: CaseForm, treatment: Treatment) -> CaseForm:
    return replace(form, columns=tuple(replace(column, treatment=treatment) for column in form.columns))


def _subsets(form: CaseForm) -> frozenset[Subset]:
    if prod(form.positions) == 1:
        return ONE
    return BATCHES if form.batching else SEVERAL


def runtime(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument, of which nothing is known; and the same with the flag that no element is written twice."""
    found = Indices("runtime", form, _subsets(form), AT_RUN_TIME, unique=Unique.UNKNOWN)
    yield found
    if prod(form.positions) > 1:
        flags = "unique_indices = true, "
        yield replace(found, name="claimed unique", unique=Unique.PROVED, flags=flags, is_example=False)


def clamped(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument brought into bounds."""
    limits = [size - window for size, window in map(form.extent, form.columns)]
    if min(limits) >= 0:
        subsets = _subsets(form) if max(limits) else ANYTHING  # a start that is always 0 makes windows of one place
        yield Indices("clamped", _treated(form, "clamped"), subsets, in_bounds=InBounds.ALWAYS)


def outside(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument brought to where nothing is."""
    beyond = _treated(form, "clamped outside")
    yield Indices("outside", beyond, NOTHING, in_bounds=InBounds.NEVER, is_example=False)


def normalized(form: CaseForm, index: str) -> Iterator[Indices]:
    """An argument whose negative values count from the end."""
    yield Indices("normalized", _treated(form, "normalised"), _subsets(form), AT_RUN_TIME)


def constant(form: CaseForm, index: str) -> Iterator[Indices]:
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
        columns = [DrawnColumn(column.dim, "constant", values=tuple(own)) for column in form.columns]
        if len(columns) == 2 and name in ("ascending", "crossed"):
            columns[-1] = replace(columns[-1], values=(0,) * count)
        is_example = name == "crossed" or count == 1
        known = replace(form, columns=tuple(columns))
        yield Indices(f"constant, {name}", known, ANYTHING, KNOWN, is_example=is_example)


def _is_run(form: CaseForm) -> bool:
    """Whether there is one component, at one row of positions."""
    return len(form.columns) == 1 and len(form.positions) == 1 and is_vector_last(form)


def run(form: CaseForm, index: str) -> Iterator[Indices]:
    """A run of rows at a runtime base: up, down, and with negative ones from the end."""
    if not _is_run(form) or not form.positions[0]:
        return
    up, down = (replace(form, columns=(DrawnColumn(form.columns[0].dim, kind),)) for kind in ("run", "reversed"))
    yield Indices("run", up, RUN)
    yield Indices("run down", down, RUN)
    yield Indices("wrapped run", _treated(up, "normalised"), RUN, parts=Parts.SEVERAL)


def per_batch(form: CaseForm, index: str) -> Iterator[Indices]:
    """A column that counts the batch, and one of runtime values."""
    is_pair = len(form.columns) == 2 and is_vector_last(form) and form.positions == form.operand[:1]
    if is_pair and not form.columns[0].dim:
        counted = replace(form, columns=(DrawnColumn(0, "coordinate"), form.columns[1]))
        yield Indices("per batch", counted, BATCHES | ONE, AT_RUN_TIME)


def _sorted(name: str, given: str, kind: str, scalar: str) -> str:
    return (
        f'{name} = "stablehlo.sort"({given}) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}):\n %l = stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar})"
        f" -> tensor<i1>\n stablehlo.return %l : tensor<i1>\n}}) : ({kind}) -> {kind}"
    )


def ordered(form: CaseForm, index: str) -> Iterator[Indices]:
    """Runtime values in ascending order; and the order of runtime values, which is a permutation."""
    if not _is_run(form) or form.positions[0] < 2:
        return
    kind, scalar = typed(form.indices, index), typed((), index)
    ascending = Made("%i", "%given", kind, _sorted("%i", "%given", kind, scalar))
    yield Indices("sorted", form, SEVERAL, AT_RUN_TIME, made=(ascending,))
    lines = (
        f"%numbers = stablehlo.iota dim = 0 : {kind}\n"
        f'%order, %i = "stablehlo.sort"(%given, %numbers) <{{dimension = 0 : i64, is_stable = true}}> ({{\n'
        f"^bb0(%a: {scalar}, %b: {scalar}, %y: {scalar}, %z: {scalar}):\n"
        f" %l = stablehlo.compare LT, %a, %b, SIGNED : ({scalar}, {scalar}) -> tensor<i1>\n"
        f" stablehlo.return %l : tensor<i1>\n}}) : ({kind}, {kind}) -> ({kind}, {kind})"
    )
    made = (Made("%i", "%given", kind, lines),)
    yield Indices("permutation", form, SEVERAL, AT_RUN_TIME, unique=Unique.PROVED, made=made)


def sorted_by_run(form: CaseForm, index: str) -> Iterator[Indices]:
    """Rows that ascend along one scatter dim, a run of columns along the other: in bounds, and in both orders."""
    if len(form.positions) != 2 or not is_vector_last(form):
        return
    scalar = typed((), index)
    for dim in (0, 1):
        rows, most = typed((form.positions[dim],), index), form.operand[1] - form.positions[1 - dim]
        ascending = (
            f"%zero = stablehlo.constant dense<0> : {scalar}\n"
            f"%last = stablehlo.constant dense<{form.operand[0] - 1}> : {scalar}\n"
            f"%inside = stablehlo.clamp %zero, %rows, %last : ({scalar}, {rows}, {scalar}) -> {rows}\n"
            f"{_sorted('%sorted', '%inside', rows, scalar)}\n"
            f"%i0 = stablehlo.broadcast_in_dim %sorted, dims = [{dim}] : ({rows}) -> {typed(form.positions, index)}"
        )
        inside = (
            f"%first = stablehlo.constant dense<0> : {scalar}\n%most = stablehlo.constant dense<{most}> : {scalar}\n"
            f"%i1 = stablehlo.clamp %first, %base, %most : {scalar}"
        )
        made = Made("%i0", "%rows", rows, ascending), Made("%i1", "%base", scalar, inside)
        along = replace(form, columns=(form.columns[0], DrawnColumn(form.columns[1].dim, "run", 1 - dim)))
        name = f"sorted by run, rows along dim {dim}"
        yield Indices(name, along, SEVERAL, AT_RUN_TIME, InBounds.ALWAYS, made=made)


PRODUCERS: tuple[Producer, ...] = (
    *(runtime, clamped, outside, normalized, constant, run),
    *(per_batch, ordered, sorted_by_run),
)
"""Every way in which the family makes indices."""
