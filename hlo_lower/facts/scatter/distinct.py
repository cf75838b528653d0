"""Whether the positions of a scatter write different places, all places, and in ascending order.

What the data says where the windows go is unknown, but how it was computed may tell that no two of them meet: an
argsort, a stride, a running sum of sizes. Only that counts. The flags `unique_indices` and `indices_are_sorted` are
claims, and what no rule proves is unknown.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.distinct.axis_facts import AxisFacts, Entries, Monotonicity
from hlo_lower.facts.distinct.distinctness import Distinctness
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Position
from hlo_lower.facts.forms.places import Place
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns, index_place
from hlo_lower.facts.scatter.constant_map import solve
from hlo_lower.facts.scatter.layout import Layout
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.site import Site


@dataclass(frozen=True)
class Distinct:
    """What is known of the places that loose positions write, for each batch coordinate.

    Attributes:
      is_unique: no two positions of one batch coordinate that are inside bounds write a common element, windows
        included.
      is_permutation: the positions of each batch coordinate write each row 0 to D - 1 of the one indexed dim exactly
        once, whole rows (so nothing is dropped either).
      is_sorted: the starts never go down along all positions of each batch coordinate, those of runs included, in the
        order in which they are applied, row-major; starts are compared by their first operand dim first. Starts outside
        bounds take part in that order, as the numbers that they are.
      why: what shows that no two positions meet; None where nothing does.
      evidence: the operations behind it.
    """

    is_unique: bool
    is_permutation: bool
    is_sorted: bool
    why: Cause | None = None
    evidence: tuple[Evidence, ...] = ()


UNPROVED = Distinct(False, False, False)


@dataclass(frozen=True)
class _IndexComponent:
    """One component of the index vector.

    Attributes:
      dim: the operand dim that it addresses.
      place: where it is in the indices, at symbolic positions.
      moves: the loose dims that it moves along.
      run: the positions of the run that it makes, or None.
      extent: of the window there, one position of a run at a time.
    """

    dim: int
    place: Place
    moves: tuple[Position, ...]
    run: Position | None
    extent: int


def find_distinct(scatter: CanonicalScatter, layout: Layout, forms: AffineAnalysis, interval: Interval) -> Distinct:
    """Find what is known of the places that the loose positions of a scatter write.

    Two positions that differ, at one batch coordinate, write no common element if in some operand dim their starts are
    at least the window's extent apart, or if one of them lies outside of bounds. The loose dims are settled one after
    the other: a dim is settled by a column that moves along it, and otherwise only along settled ones, in steps of at
    least the extent. Of two positions look at the first settled dim, in the order of settling, in which they differ:
    its column moves along nothing else in which they do, so it keeps them apart. Several may be settled at once by one
    column.

    Args:
      scatter: the scatter.
      layout: its layout; the positions along runs have been merged into the window, and along them no other column
        moves.
      forms: linear forms of the elements of index tensors.
      interval: of the indices.
    """
    if layout.repeated:
        return UNPROVED
    if any(run.size > scatter.operand_shape[run.operand_dim] for run in layout.wrapped_runs):
        return UNPROVED
    if scatter.is_empty:
        return Distinct(True, False, True, Code.NOTHING_WRITTEN())
    constant = interval.is_constant and bool(scatter.index_dims)
    unique = _of_constants(scatter, interval) if constant else None
    facts = Distinctness(forms)
    loose = tuple(Position(n, scatter.scatter_shape[n]) for n in layout.loose)
    runs = {run.operand_dim: Position(run.scatter_dim, run.size) for run in layout.runs}
    columns = _columns(scatter, {dim for dim, _ in layout.batch}, runs, facts, loose, len(interval.shape))
    settled, evidence = _prove_settled(scatter, facts, columns, loose)
    is_unique = settled or bool(unique)
    is_sorted, order_evidence = _prove_sorted(scatter, layout, facts, len(interval.shape))
    permutation = _permutation(scatter, layout, facts, columns, loose, len(interval.shape)) if settled else None
    why = Code.PLACES(constant, permutation is not None, is_sorted) if is_unique else None
    proofs = (*evidence, *(permutation or ()), *order_evidence)
    return Distinct(is_unique, permutation is not None, is_sorted, why, tuple(dict.fromkeys(proofs)))


def _columns(
    scatter: CanonicalScatter,
    batch: Container[int],
    runs: Mapping[int, Position],
    facts: Distinctness,
    axes: tuple[Position, ...],
    rank: int,
) -> list[_IndexComponent]:
    """The columns of the index vector, along the axes, without those whose start is the batch coordinate."""
    found: list[_IndexComponent] = []
    for k, (dim, _) in enumerate(index_columns(scatter, rank)):
        if dim not in batch:
            place = index_place(scatter, k, rank)
            moves = facts.moves_with(Entries(Site(scatter.indices), place, axes))
            found.append(_IndexComponent(dim, place, moves, runs.get(dim), scatter.window[dim]))
    return found


def _prove_settled(
    scatter: CanonicalScatter, facts: Distinctness, columns: Sequence[_IndexComponent], loose: tuple[Position, ...]
) -> tuple[bool, tuple[Evidence, ...]]:
    """Whether writes differ along every loose dim, and the evidence.

    A column that makes a run moves along that as well: it settles loose dims if its rows differ along all of them and
    the run together.
    """
    left, evidence = list(loose), list[Evidence]()
    while left:
        for column in columns:
            axes = tuple(axis for axis in left if axis in column.moves)
            if not axes:
                continue
            # All that it moves along at once, or one of them while the others are settled.
            with_run = axes if column.run is None else tuple(sorted((*axes, column.run), key=lambda axis: axis.dim))
            found = facts.of(Entries(Site(scatter.indices), column.place, with_run))
            if _keeps_apart(found, column, scatter):
                left = [axis for axis in left if axis not in axes]
                evidence += found.evidence
                break
        else:
            return False, ()
    return True, tuple(evidence)


def _keeps_apart(found: AxisFacts, column: _IndexComponent, scatter: CanonicalScatter) -> bool:
    """Whether windows at such starts write no common element: they are far enough apart, or lie outside bounds.

    A start s writes nothing where s <= -W or s >= D, under either policy for windows that reach out.
    """
    extent, size = column.extent, scatter.operand_shape[column.dim]
    return found.gap >= extent and all(high <= -extent or low >= size for low, high in found.repeats)


def _prove_sorted(
    scatter: CanonicalScatter, layout: Layout, facts: Distinctness, rank: int
) -> tuple[bool, tuple[Evidence, ...]]:
    """Whether the starts never go down in the order of application, compared by their first operand dim first.

    The positions are all of a batch coordinate, as the flat form counts them (`hlo_lower.facts.scatter.flat`): a run
    is one dim among them, wherever it stands, because its rows are writes like others. A column that moves along the
    slowest dims alone and goes up strictly along them decides between all positions that differ in those; those
    behind it decide between the others. The last column that moves need not go up strictly.
    """
    batch = {**dict(layout.batch), **dict(scatter.batching)}
    sizes = enumerate(scatter.scatter_shape)
    left = tuple(Position(n, size) for n, size in sizes if size > 1 and n not in batch.values())
    evidence = list[Evidence]()
    by_dim = sorted(_columns(scatter, batch, {}, facts, left, rank), key=lambda c: c.dim)
    for column in by_dim:
        axes = tuple(axis for axis in left if axis in column.moves)
        if not axes:
            continue
        is_last = all(other.dim <= column.dim or not set(left) & set(other.moves) for other in by_dim)
        if not is_last and left[: len(axes)] != axes:
            return False, ()
        found = facts.of(Entries(Site(scatter.indices), column.place, left if is_last else axes))
        if found.order is Monotonicity.UNKNOWN or (not is_last and found.order is not Monotonicity.INCREASING):
            return False, ()
        evidence += found.evidence
        if is_last:
            return True, tuple(evidence)
        left = left[len(axes) :]
    return True, tuple(evidence)


def _permutation(
    scatter: CanonicalScatter,
    layout: Layout,
    facts: Distinctness,
    columns: Sequence[_IndexComponent],
    loose: tuple[Position, ...],
    rank: int,
) -> tuple[Evidence, ...] | None:
    """The proof that each row of the one indexed dim is written exactly once, as a whole, or None.

    The starts in that dim are 0 to D - 1, each once, so none is out of bounds. Every other operand dim is one where the
    batch coordinate is the start, or is written as a whole: by the window, at start 0, or by a run over all of it.
    """
    batch = {dim for dim, _ in layout.batch}
    placing = [column for column in columns if column.run is None]
    if len(placing) != 1 or placing[0].moves != loose:
        return None
    dim = placing[0].dim
    if layout.window[dim] != 1 or prod(axis.size for axis in loose) != scatter.operand_shape[dim]:
        return None
    sides = zip(layout.window, scatter.operand_shape, strict=True)
    if any(extent != size for d, (extent, size) in enumerate(sides) if d != dim and d not in batch):
        return None
    evidence = list[Evidence]()
    batching = {d for d, _ in scatter.batching}
    for run in (run for run in layout.runs if run.operand_dim not in batching):
        # A run as long as its dim begins at row 0 only if it is proved to.
        k = scatter.index_dims.index(run.operand_dim)
        axis = Position(run.scatter_dim, run.size)
        rows = facts.of(Entries(Site(scatter.indices), index_place(scatter, k, rank), (axis,)))
        if not rows.covers:
            return None
        evidence += rows.evidence
    found = facts.of(Entries(Site(scatter.indices), placing[0].place, loose))
    return (*found.evidence, *evidence) if found.covers else None


def _of_constants(scatter: CanonicalScatter, interval: Interval) -> bool | None:
    """Whether constant windows, taken apart into elements, meet nowhere: computed; None where they are too many."""
    solved = solve(scatter, interval, drops_windows=False, most_pieces=0)
    return None if solved is None else solved.is_unique
