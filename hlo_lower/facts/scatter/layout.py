"""The layout of a scatter: what each of its scatter dims does to the place of the windows.

    run        one window dim moves by one row per position: the positions together are one larger window
    batch      the coordinate itself is the start in some operand dim, and other starts differ along it
    repeated   nothing moves: every position writes the same place, and of an assignment the last one counts
    loose      the data places the windows

Positions along runs merge into the window, so that what is left are the kept positions: loose and batch dims. A batch
dim along which nothing else moves is a run, too, from row 0 to the last. Merging leaves the order of the updates on
each element as it is: rows of a run differ, and repeated positions write the same places with the same drops, so all
but the last are overwritten.

A run is a claim about index columns: `v[p] = v[0] + p` modulo 2^width of the index type. Rows whose exact number
`v[0] + p` lies outside the type are negative after wrapping around, so they are dropped as they would be without it,
as long as `D + S` is at most 2^(width-1) (trap 41). For unsigned types nothing may wrap around at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.forms.affine import AffineAnalysis, fit_strides
from hlo_lower.facts.forms.linear import Element, Linear, Normalized, Position, Symbol, positions
from hlo_lower.facts.forms.places import Entry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns, index_place
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.region import classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.ops.names import RESHAPE


@dataclass(frozen=True)
class RunOfRows:
    """Positions along a scatter dim that write consecutive rows of an operand dim.

    Attributes:
      operand_dim: where the rows lie.
      scatter_dim: along which the positions go.
      size: how many they are.
      is_reversed: the first position writes the last row.
      is_aligned: the first row is a multiple of the size, and so is the operand's extent: the run is inside as a whole
        or outside as a whole, as a page of a pool is.
      is_wrapped: negative rows have been moved up by the extent or more, each on its own: the run may come in two parts
        (trap 39).
    """

    operand_dim: int
    scatter_dim: int
    size: int
    is_reversed: bool = False
    is_wrapped: bool = False
    is_aligned: bool = False


@dataclass(frozen=True)
class Layout:
    """What each scatter dim does.

    Attributes:
      runs: those that merge into the window.
      batch: (operand dim, scatter dim) pairs: the coordinate is the start.
      repeated, loose: the others of a size above 1.
      window: the window's extents with the runs merged into it.
      kept_shape: sizes of the loose and batch dims, in program order; ones are left out.
      kept: which those are.
      why: a cause for each column of the indices, and for each loose dim why it is no run.
      proofs: the evidence behind them.
    """

    runs: tuple[RunOfRows, ...]
    batch: tuple[tuple[int, int], ...]
    repeated: tuple[int, ...]
    loose: tuple[int, ...]
    window: tuple[int, ...]
    kept: tuple[int, ...]
    kept_shape: tuple[int, ...]
    why: tuple[Cause, ...] = ()
    proofs: tuple[Evidence, ...] = ()

    @property
    def positions(self) -> int:
        """How many windows are left."""
        return prod(self.kept_shape)

    @property
    def wrapped_runs(self) -> tuple[RunOfRows, ...]:
        """The runs that may wrap around into two parts."""
        return tuple(run for run in self.runs if run.is_wrapped)

    @property
    def coordinates(self) -> dict[int, int]:
        """For each operand dim that a batch dim addresses: the batch dim's number among the kept dims."""
        return {dim: self.kept.index(n) for dim, n in self.batch}


@dataclass(frozen=True)
class _Column:
    """What is known of one component of the index vector: along which scatter dims it moves, and how."""

    operand_dim: int
    form: Linear

    @property
    def moves_with(self) -> set[int]:
        return positions([self.form])

    @property
    def normalized_index(self) -> Normalized | None:
        """The normalised index that it is, or None."""
        terms = list(self.form.terms.items())
        if self.form.constant or self.form.moved or len(terms) != 1 or terms[0][1] != 1:
            return None
        symbol = terms[0][0]
        # A conversion to a narrower type behind it may have put it somewhere else.
        return symbol if isinstance(symbol, Normalized) and self.form.width >= symbol.width else None

    def is_coordinate(self, n: int, scatter: CanonicalScatter) -> bool:
        """Whether it is the coordinate along scatter dim n, from the operand dim's first row to its last."""
        size, form = scatter.scatter_shape[n], self.form
        if scatter.window[self.operand_dim] != 1 or scatter.operand_shape[self.operand_dim] != size:
            return False
        # Moved back after it wrapped around, it is another number, though congruent to the coordinate.
        if form.constant or form.moved or form.terms != {Position(n): 1}:
            return False
        return form.width == 0 or size <= 1 << (form.width - 1)

    def cause(self) -> Cause:
        """The form, for whoever asks why it is a run or none."""
        inner = self.normalized_index
        told = form_of(self.form) if inner is None else form_of(inner.inner, moved_up=inner.offset)
        return Code.COLUMN(self.operand_dim, told)


MAX_WRAPPED = 2
"""Runs that may wrap, in one scatter: each doubles the number of windows that are written."""


def single(scatter: CanonicalScatter) -> Layout:
    """The layout of a scatter of one window, or of none."""
    return Layout((), (), (), (), scatter.window, (), ())


def lay_out(scatter: CanonicalScatter, affine: AffineAnalysis, interval: Interval, *, assigns: bool) -> Layout:
    """Find the layout of a scatter.

    Args:
      scatter: the scatter; it has an index vector, and neither the window nor the operand is empty.
      affine: gives the forms of the index columns.
      interval: of the indices.
      assigns: whether the region reads no current value, so that the last of repeated positions counts.
    """
    if scatter.positions <= 1:
        return single(scatter)
    columns = _columns(scatter, affine, interval)
    explicit = {n: dim for dim, n in scatter.batching}
    runs: dict[int, RunOfRows] = {}
    batch: dict[int, int] = {}
    repeated: list[int] = []
    loose: dict[int, Cause] = {}
    for n in (n for n, size in enumerate(scatter.scatter_shape) if size > 1):
        moving = [column for column in columns if n in column.moves_with]
        coordinates = [explicit[n]] if n in explicit else [c.operand_dim for c in moving if c.is_coordinate(n, scatter)]
        others = [c for c in moving if c.operand_dim not in coordinates]
        if coordinates and (others or len(coordinates) > 1):
            batch[n] = coordinates[0]
        elif coordinates:
            runs[n] = RunOfRows(coordinates[0], n, scatter.scatter_shape[n])
        elif not others:
            if assigns:
                repeated.append(n)
            else:
                loose[n] = Code.SAME_PLACE()
        elif len(others) > 1:
            loose[n] = Code.SEVERAL_DIMS(tuple(c.operand_dim for c in others))
        elif isinstance(found := _run(others[0], n, scatter, affine, interval), Cause):
            loose[n] = found
        elif found.operand_dim in {run.operand_dim for run in runs.values()}:
            loose[n] = Code.SECOND_RUN(found.operand_dim)
        elif found.is_wrapped and sum(run.is_wrapped for run in runs.values()) == MAX_WRAPPED:
            loose[n] = Code.TOO_MANY_WRAPPED(MAX_WRAPPED)
        else:
            runs[n] = found
    moves_with = {c.operand_dim: c.moves_with for c in columns}
    for n, run in runs.items():
        # Rows of a run that goes its own way never meet, so each sees the loose positions behind it in their order.
        # Rows that shift with a loose position may meet those of another, and so may rows that wrap onto each other.
        behind = {m for m in loose if m > n}
        meets = bool(moves_with.get(run.operand_dim, set()) & behind)
        if meets or (behind and run.is_wrapped and run.size > scatter.operand_shape[run.operand_dim]):
            loose[n] = Code.ORDER_WOULD_CHANGE()
    return _layout(scatter, columns, runs, batch, repeated, loose)


def _layout(
    scatter: CanonicalScatter,
    columns: Sequence["_Column"],
    runs: Mapping[int, RunOfRows],
    batch: Mapping[int, int],
    repeated: Sequence[int],
    loose: Mapping[int, Cause],
) -> Layout:
    merged = tuple(run for n, run in runs.items() if n not in loose)
    window = list(scatter.window)
    for run in merged:
        window[run.operand_dim] = run.size
    kept = tuple(sorted((*loose, *batch)))
    return Layout(
        runs=merged,
        batch=tuple((dim, n) for n, dim in batch.items()),
        repeated=tuple(repeated),
        loose=tuple(sorted(loose)),
        window=tuple(window),
        kept=kept,
        kept_shape=tuple(scatter.scatter_shape[n] for n in kept),
        why=(*(c.cause() for c in columns), *(Code.LOOSE(n, loose[n]) for n in sorted(loose))),
        proofs=tuple(c.form.evidence for c in columns if c.form.evidence is not None),
    )


def _columns(scatter: CanonicalScatter, affine: AffineAnalysis, interval: Interval) -> list[_Column]:
    """The form of each component of the index vector, at a symbolic position."""
    rank = len(interval.shape)
    columns: list[_Column] = []
    for k, (dim, index) in enumerate(index_columns(scatter, rank)):
        form = affine.of(Entry(Site(scatter.indices), index_place(scatter, k, rank)))
        if any(not isinstance(symbol, Position) for symbol in form.terms):
            form = _constant_form(interval, index, scatter) or form
        columns.append(_Column(dim, form))
    return columns


def _constant_form(interval: Interval, index: tuple[slice | int, ...], scatter: CanonicalScatter) -> Linear | None:
    """The form of a column whose values are known, where they go up or down evenly."""
    lo, hi = interval.part(index)
    if bool(np.any(lo != hi)):
        return None
    found = fit_strides(interval.full()[0][index].reshape(scatter.scatter_shape))
    if found is None:
        return None
    base, strides = found
    shape = scatter.scatter_shape
    terms: dict[Symbol, int] = {Position(n, shape[n]): stride for n, stride in enumerate(strides) if stride}
    return Linear(base, terms, evidence=interval.evidence)


def _is_inside(column: "_Column", scatter: CanonicalScatter, interval: Interval) -> bool:
    """Whether every start of a column is proved to lie inside."""
    index = dict(index_columns(scatter, len(interval.shape)))[column.operand_dim]
    lo, hi = interval.part(index)
    last = scatter.operand_shape[column.operand_dim] - scatter.window[column.operand_dim]
    return bool(np.all(lo >= 0) and np.all(hi <= last))


def _run(
    column: "_Column", n: int, scatter: CanonicalScatter, affine: AffineAnalysis, interval: Interval
) -> RunOfRows | Cause:
    """The run that a column makes along scatter dim n, if it is the only one that moves along it; or why it is none."""
    dim, form, offset = column.operand_dim, column.form, 0
    if scatter.window[dim] != 1:
        return Code.WINDOW_EXTENT(dim, scatter.window[dim])
    moved_up = column.normalized_index
    if moved_up is not None:
        form, offset = moved_up.inner, moved_up.offset
    stride, size, extent = form.stride(n), scatter.scatter_shape[n], scatter.operand_shape[dim]
    if stride is None:
        return Code.COLUMN(dim, form_of(form))
    if stride not in (1, -1) or (offset and stride != 1):
        return Code.STRIDE(dim, stride)
    if offset and offset < extent:
        return Code.MOVED_UP_TOO_LITTLE(dim, offset, extent)
    if stride == 1 and _is_aligned(form, n, size) and extent % size == 0 and offset % size == 0:
        return RunOfRows(dim, n, size, is_aligned=True)
    run = RunOfRows(dim, n, size, is_reversed=stride == -1, is_wrapped=bool(offset))
    # From one row to the next, a number that wraps around jumps by 2^width - 1: both cannot lie inside a smaller dim.
    inside = not offset and extent < 1 << form.width and _is_inside(column, scatter, interval)
    if form.width == 0 or inside or affine.is_exact(form, scatter.indices):
        return run
    is_signed = scatter.indices.element.is_signed
    if is_signed and size + max(extent, offset) + form.drift <= 1 << (form.width - 1):
        return run
    return Code.MAY_WRAP(dim, f"{'i' if is_signed else 'ui'}{form.width}")


def _is_aligned(form: Linear, n: int, size: int) -> bool:
    """Whether the rows of a run along scatter dim n begin at a multiple of its size.

    Modulo 2^width they do so, too, if the size is a power of two; then no row wraps around without the others. Negative
    rows are all of the run or none, so moving them up by a multiple of the size moves all or none.
    """
    others = [coefficient for symbol, coefficient in form.terms.items() if symbol != Position(n)]
    is_multiple = all(coefficient % size == 0 for coefficient in (form.constant, *others))
    return is_multiple and not form.drift and (form.width == 0 or (size & (size - 1) == 0 and size < 1 << form.width))


def form_of(form: Linear, *, moved_up: int | None = None) -> Cause:
    """What a form says of the position: what places it, whether it has a base at run time, its terms and its constant.

    Args:
      form: the form.
      moved_up: by how much negative ones have been moved up since, or None.
    """
    moving = {symbol: bool(positions([Linear(0, {symbol: 1})])) for symbol in form.terms}
    placed = next((s.why for s, moves in moving.items() if isinstance(s, Element) and moves), None)
    based = placed is None and not all(moving.values())
    steps = sorted((s.dim, c) for s, c in form.terms.items() if isinstance(s, Position))
    return Code.FORM(placed, based, tuple(steps), form.constant, moved_up)


# --- positions that were flattened before the scatter, seen as several dims again: the pages of a chunk ---
#
# A serving stack writes whole pages into a flat pool by `slots = (table[:, None] * block +
# arange(block)).reshape(-1)`. Along the one scatter dim that is left nothing moves evenly, but along the dims before
# the reshape it does: over the block there is a run, so a page is one window. A scatter takes its positions in row-
# major order whatever dims they are counted in, so the scatter of unfolded positions is the same scatter.


MAX_LOOKED_AT = 64
"""Producers of the indices that are looked at for a reshape."""


def unfold_positions(scatter: CanonicalScatter, analysis: IndexAnalysis) -> CanonicalScatter:
    """The scatter with its positions counted in the dims that leave the fewest windows; most often as it is.

    Args:
      scatter: the scatter.
      analysis: the ranges of the module's integers.
    """
    if len(scatter.scatter_shape) != 1 or scatter.batching or not scatter.index_dims or scatter.is_empty:
        return scatter  # a batching dim counts the scatter dim as it is
    choices = list(dict.fromkeys(_shapes(scatter.indices, scatter.positions)))
    interval = analysis.of(Site(scatter.indices)) if choices else None
    if interval is None or interval.is_constant:
        return scatter
    assigns = not classify_region(scatter.region).reads_current
    found, fewest = scatter, lay_out(scatter, AffineAnalysis(analysis), interval, assigns=assigns).positions
    for shape in choices:
        other = replace(scatter, unfolded=shape)
        # An analysis of its own: positions of another size are the same symbols to it.
        layout = lay_out(other, AffineAnalysis(analysis), interval, assigns=assigns)
        if layout.runs and layout.positions < fewest:
            found, fewest = other, layout.positions
    return found


def _shapes(value: Value, count: int) -> Iterator[tuple[int, ...]]:
    """The shapes of several dims that the indices, or what they are computed from, had before a reshape."""
    pending, seen = [value], {value}
    while pending and len(seen) < MAX_LOOKED_AT:
        node = pending.pop().node
        if node is None:
            continue
        for operand in node.operands:
            if operand in seen or not operand.is_tensor or not operand.is_static:
                continue
            seen.add(operand)
            shape = tuple(size for size in operand.static_shape if size != 1)
            if node.name == RESHAPE and len(shape) > 1 and prod(shape) == count:
                yield shape
            elif prod(shape) >= count:
                pending.append(operand)


# --- materialize a scatter under its layout ---
#
# Materialize a scatter under its layout: starts and updates of the kept positions, the runs merged into the window.


@dataclass(frozen=True)
class Part:
    """One of the windows of a kept position; a wrapped run has two.

    Attributes:
      by_last_row: the runs that are placed by their last row, not by their first.
    """

    by_last_row: tuple[RunOfRows, ...]


@dataclass(frozen=True)
class Arrangement:
    """A scatter with its layout.

    Attributes:
      scatter: the scatter in canonical form.
      layout: what its scatter dims do.
    """

    scatter: CanonicalScatter
    layout: Layout

    @property
    def parts(self) -> tuple[Part, ...]:
        """The windows of each kept position, in the order in which they are written.

        Negative rows come before the others, so the part that begins at the first row comes first (trap 39).
        """
        wrapped = self.layout.wrapped_runs
        choices = product(*((False, True) for _ in wrapped))
        return tuple(Part(tuple(r for r, second in zip(wrapped, c, strict=True) if second)) for c in choices)

    def indices(self, build: Builder, part: Part) -> Value:
        """The index vectors of the first rows, [kept..., K], in the start type.

        Of a run that is part of `part.by_last_row` it is the vector of the last row: `first_of` goes back from there.
        """
        scatter, layout = self.scatter, self.layout
        value = scatter.canonical_indices(build)
        first = [0] * (len(scatter.scatter_shape) + 1)
        limit = [*scatter.scatter_shape, len(scatter.index_dims)]
        for run in layout.runs:
            at_end = run.is_reversed or run in part.by_last_row
            first[run.scatter_dim] = run.size - 1 if at_end else 0
            limit[run.scatter_dim] = first[run.scatter_dim] + 1
        for n in layout.repeated:
            limit[n] = 1
        value = build.slice(value, first, limit)
        return build.reshape(value, (*layout.kept_shape, len(scatter.index_dims)))

    def first_of(self, build: Builder, run: RunOfRows, last: Value) -> Value:
        """The first row of a run from its last one; far out of bounds it stays out of bounds, and nothing overflows.

        A last row in [0, D + S - 2] is needed exactly; one below or above puts all rows out of bounds.
        """
        extent, element = self.scatter.operand_shape[run.operand_dim], last.element_type
        low = build.constant(-1, last.static_shape, element)
        high = build.constant(extent + run.size - 1, last.static_shape, element)
        kept = build.clamp(low, last, high)
        return build.subtract(kept, build.constant(run.size - 1, last.static_shape, element))

    def updates(self, build: Builder) -> list[Value]:
        """The updates in the region's types, [kept..., W0, ..., W(R-1)] with the runs in the window.

        One transpose at most, from the updates as given: a second one would keep compilers from seeing that, more often
        than not, both together change nothing.
        """
        types = self.scatter.region_types
        return [self._arrange(build, build.convert(v, t)) for v, t in zip(self.scatter.updates, types, strict=True)]

    def _arrange(self, build: Builder, value: Value) -> Value:
        scatter, layout = self.scatter, self.layout
        m = len(scatter.scatter_shape)
        value, permutation = scatter.unfold(build, value)
        scatter_dims, window_dims = permutation[:m], permutation[m:]
        first, limit = [0] * len(value.static_shape), list(value.static_shape)
        for n in layout.repeated:
            first[scatter_dims[n]] = limit[scatter_dims[n]] - 1
        value = build.slice(value, first, limit)
        value = build.reverse(value, [scatter_dims[run.scatter_dim] for run in layout.runs if run.is_reversed])
        merged = {run.operand_dim: scatter_dims[run.scatter_dim] for run in layout.runs}
        taken = {*(scatter_dims[n] for n in layout.kept), *merged.values()}
        idle = [d for d in scatter_dims if d not in taken]
        place = dict(zip(scatter.window_dims, window_dims, strict=True))
        order = [*idle, *(scatter_dims[n] for n in layout.kept)]
        for dim in range(scatter.rank):
            order += [dims[dim] for dims in (merged, place) if dim in dims]
        return build.reshape(build.transpose(value, order), (*layout.kept_shape, *layout.window))
