"""One window: the rules of a tile, of a run of rows, of a short operand, and of a write of all or nothing.

A tile is the KV cache of a decode step, `cache.at[:, :, pos].set(k)`; a run of rows at base + iota, of which those
outside are dropped one by one, that of a prefill step, `cache.at[:, :, start + arange(n)].set(k)`, and torch's
`index_copy`. They share `write_position`: for a tile at start s, a current value c of the tile and an update u of its
size, the new value is `region(c, u)`, and

- where the tile is known to lie inside, it is written as it is;
- in a guarded dim, out of which the whole window is dropped, `select(inside, region(c, u), c)` is written: out of
  bounds that is what was read, at the place where it was read, the start clamped into the tensor. The select is as
  large as the update, never as the buffer, so a buffer that is written in place stays in place (trap 31);
- in a masked dim, out of which elements are dropped, the tile is moved into the tensor and only the elements that it
  covered are changed (`hlo_lower.ops.axes.parts.ShiftedTile`).

A run that wraps is written in two parts, the negative rows first (trap 39). Where it does not wrap, both parts are the
same window: assigned twice it is what it was after the first time, and combined it would count twice, so then the
second part is left out by the select.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

from hlo_lower.base.registry import DoesNotApply, RuleList, When
from hlo_lower.facts.scatter.facts import Dialect, Drops, InBounds, Offsets, Parts
from hlo_lower.facts.scatter.layout import Part
from hlo_lower.facts.scatter.lift import lift
from hlo_lower.facts.values.region import ASSIGNING, Combiner
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.kind import ScatterLowering
from hlo_lower.ops.axes.parts import DynamicTile
from hlo_lower.ops.names import IF, SCATTER
from hlo_lower.ops.subset import Empty, Full, Rows, Subset, Tile

READING = frozenset(Combiner) - ASSIGNING - {Combiner.NO_OP}
"""Combiners that read the current value."""


def new_values(
    op: ScatterLowering,
    build: Builder,
    currents: Sequence[Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """The region on windows of current values and updates, all of one shape."""
    return lift(build, op.graph, op.scatter.region, currents, updates, captured)


def reads_current(op: ScatterLowering) -> bool:
    """Whether any operand's new value depends on a current value."""
    return op.facts.region.reads_current


def write_position(
    op: ScatterLowering,
    build: Builder,
    operands: Sequence[Value],
    vectors: Sequence[Value | None],
    coordinates: Mapping[int, Value],
    updates: Sequence[Value],
    captured: Mapping[Value, Value] | None = None,
) -> list[Value]:
    """The operands after one kept position: its window, or the parts of its wrapped run.

    Args:
      op: the scatter.
      build: where to build; a loop's body has its own.
      operands: the tensors to write into, in the region's types.
      vectors: for each part of the arrangement the index vector, [K] in the start type; None where it is not needed.
      coordinates: for operand dims that a batch dim addresses, their start.
      updates: the window's updates, in the region's types and of the layout's window.
      captured: see `lift`.
    """
    tiles = _tiles(op, build, vectors, coordinates)
    current = list(operands)
    for number, (part, tile) in enumerate(zip(op.arrangement.parts, tiles, strict=True)):
        is_apart = None
        for run in part.by_last_row if reads_current(op) else ():
            here = build.compare(tile.starts[run.operand_dim], "NE", tiles[0].starts[run.operand_dim])
            is_apart = here if is_apart is None else build.and_(is_apart, here)
        current = _write(op, build, tile, current, updates, number, is_apart, captured)
    return current


def _tiles(
    op: ScatterLowering, build: Builder, vectors: Sequence[Value | None], coordinates: Mapping[int, Value]
) -> list[DynamicTile]:
    """Where the parts of the window are written."""
    facts, shape = op.facts, op.scatter.operand_shape
    return [
        DynamicTile(shape, own, facts.layout.window, facts.guarded_dims, facts.masked_dims)
        for part, vector in zip(op.arrangement.parts, vectors, strict=True)
        for own in (_starts(op, build, part, vector, coordinates),)
    ]


def _write(
    op: ScatterLowering,
    build: Builder,
    tile: DynamicTile,
    operands: Sequence[Value],
    updates: Sequence[Value],
    part: int,
    condition: Value | None,
    captured: Mapping[Value, Value] | None,
) -> list[Value]:
    """The operands after one tile, if the condition holds."""
    tile, inside = tile.inside(build)
    if inside is not None:
        condition = inside if condition is None else build.and_(condition, inside)
    shifted = tile.shift(build, spare=part)
    place = shifted.tile
    aligned = [shifted.align(build, u) for u in updates]
    covered = shifted.is_covered(build)
    if condition is None and covered is None:
        # A region that reads no current value is given the updates in their place: it does not look.
        currents = [place.materialize(build, t) for t in operands] if reads_current(op) else updates
        values = new_values(op, build, currents, updates, captured)
        return [place.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]
    if covered is not None and condition is not None:
        condition = build.and_(covered, build.broadcast(condition, covered.static_shape))
    chosen = covered if condition is None else condition
    assert chosen is not None
    currents = [place.materialize(build, t) for t in operands]
    proposed = new_values(op, build, currents, aligned, captured)
    values = [build.select(chosen, new, old) for new, old in zip(proposed, currents, strict=True)]
    return [place.yield_to(build, t, v) for t, v in zip(operands, values, strict=True)]


def one_window(op: ScatterLowering) -> list[Value]:
    """The results of a scatter whose positions make one window."""
    vectors, updates = _window_inputs(op)
    return write_position(op, op.build, op.scatter.promoted_operands(op.build), vectors, {}, updates)


def _window_inputs(op: ScatterLowering) -> tuple[list[Value | None], list[Value]]:
    """The index vectors of the parts of the one window, where they are needed, and its updates."""
    build, scatter = op.build, op.scatter
    updates = [build.reshape(u, op.facts.layout.window) for u in op.arrangement.updates(build)]
    needed = any(op.facts.offsets_known[d] is None for d in scatter.index_dims)
    vectors = [op.arrangement.indices(build, part) if needed else None for part in op.arrangement.parts]
    k = (len(scatter.index_dims),)
    return [None if v is None else build.reshape(v, k) for v in vectors], updates


def _starts(
    op: ScatterLowering, build: Builder, part: Part, vector: Value | None, coordinates: Mapping[int, Value]
) -> tuple[Value, ...]:
    """A scalar start per operand dim: the coordinate, a constant where it is known, else from the index vector."""
    scatter = op.scatter
    moved = {run.operand_dim: run for run in part.by_last_row}
    starts: dict[int, Value] = dict(coordinates)
    known: dict[int, int] = {}
    for dim, size in enumerate(scatter.operand_shape):
        offset = op.facts.offsets_known[dim] if dim in scatter.index_dims else 0
        if dim not in starts and offset is not None:
            # Brought to [-W, D], as far out as it was, a constant start fits the start type, whatever it was.
            known[dim] = max(-op.facts.layout.window[dim], min(offset, size))
    for k, dim in enumerate(scatter.index_dims):
        if dim not in starts and dim not in known:
            assert vector is not None
            component = build.reshape(build.slice(vector, [k], [k + 1]), ())
            starts[dim] = op.arrangement.first_of(build, moved[dim], component) if dim in moved else component
    constants = {offset: build.constant(offset, (), scatter.start_type) for offset in dict.fromkeys(known.values())}
    return tuple(starts[d] if d in starts else constants[known[d]] for d in range(scatter.rank))


rules = RuleList()
on_tile = partial(rules.lowers, SCATTER, subset=Tile)
on_rows = partial(rules.lowers, SCATTER, subset=Rows)


# --- a tile ---


@on_tile(combiner=ASSIGNING, in_bounds={InBounds.ALWAYS}, form="dynamic_update_slice")
def scatter_to_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that lies inside.

        %r = "stablehlo.scatter"(%operand, %index, %updates) ({ return %update })
        ->
        %r = stablehlo.dynamic_update_slice %operand, %window, %start...

    Equal, because `0 <= start <= D - W` is proved in every dim: nothing is dropped and `dynamic_update_slice` clamps
    nothing, so both write the window at the start. Both policies; one window, so no duplicates. In place on a donated
    buffer; costs the update.
    """
    return one_window(op)


@on_tile(
    combiner=ASSIGNING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_update_slice of select(in_bounds, update, dynamic_slice)",
)
def scatter_to_guarded_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that is dropped as a whole where it is out of bounds.

        %place = stablehlo.clamp 0, %start, D - W
        %old   = stablehlo.dynamic_slice %operand, %place...
        %new   = stablehlo.select (%place == %start), %window, %old
        %r     = stablehlo.dynamic_update_slice %operand, %new, %place...

    Equal: in bounds, nothing is clamped and the window is written. Out of bounds, what was read at the nearest place
    is written back there, so the operand is unchanged, as when the scatter drops the window
    (trap 2). For oob=xla, and for oob=spec where the window has extent 1 in every dim that may be out of bounds, so
    that dropping its elements is dropping it. The guard is as large as the update; in place on a donated buffer.

    For a reader of linalg, which has branches, nothing is read and nothing selected:

        %r     = stablehlo.if (%place == %start) { dynamic_update_slice %operand, %window, %place... } { %operand }

    Equal, as out of bounds the operand is returned. It becomes an `scf.if` around one `tensor.insert_slice`.
    """
    return _write_in_branch(op) if op.facts.dialect is Dialect.LINALG else one_window(op)


def _write_in_branch(op: ScatterLowering) -> Sequence[Value]:
    """Write the window in a branch that runs only where the window lies inside."""
    build = op.build
    vectors, updates = _window_inputs(op)
    [tile] = _tiles(op, build, vectors, {})
    place, inside = tile.inside(build)
    assert inside is not None
    operands = op.scatter.promoted_operands(build)
    values = new_values(op, build, updates, updates)
    branches = build.op(IF, [inside], [operand.raw.type for operand in operands], regions=2)

    def write(inner: Builder, _: Sequence[Value]) -> Sequence[Value]:
        return [place.yield_to(inner, t, v) for t, v in zip(operands, values, strict=True)]

    def keep(_: Builder, __: Sequence[Value]) -> Sequence[Value]:
        return operands

    build.region(branches, 0, [], write)
    build.region(branches, 1, [], keep)
    return branches.results


@on_tile(
    combiner=ASSIGNING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.ELEMENTS},
    form="dynamic_update_slice of the update shifted into bounds, its outside elements masked",
)
def scatter_to_shifted_dynamic_update_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window whose elements are dropped one by one where they are out of bounds (oob=spec).

        %s     = clamp(%start, 0, D - W)             the nearest place inside
        %moved = dynamic_slice(pad(%window, W, W), (%s - %start) + W)
        %new   = select(0 <= iota + (%s - %start) < W, %moved, dynamic_slice(%operand, %s))
        %r     = dynamic_update_slice(%operand, %new, %s)

    Equal: the element at position p of the operand, s <= p < s + W, is written by element p - start of the window if
    that lies in [0, W), else not at all. With k = p - s this is element k + (s - start): what %moved holds at k, and
    what the mask asks for. Positions outside [s, s + W) hold no element of the window: a start in bounds is its own
    s, one below 0 has s = 0 and reaches no further than start + W <= W, one above D - W has s = D - W and begins
    behind it. A start more than a window out is saturated first, so nothing overflows (trap 9). Costs the update,
    padded three times in each dim that may be out of bounds; nothing is buffer-sized (trap 3).
    """
    return one_window(op)


@on_tile(combiner=READING, in_bounds={InBounds.ALWAYS}, form="dynamic_slice, the body, dynamic_update_slice")
def scatter_to_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window that lies inside.

        %old = stablehlo.dynamic_slice %operand, %start...
        %new = stablehlo.add %old, %window               (the region, lifted)
        %r   = stablehlo.dynamic_update_slice %operand, %new, %start...

    Equal, because each element of the window is combined once with what lies at its place, and nothing is clamped.
    Both policies; one window, so the order of updates does not matter, nor does floating-point association. Costs the
    update.
    """
    return one_window(op)


@on_tile(
    combiner=READING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.WINDOWS},
    form="dynamic_slice, the body, select(in_bounds), dynamic_update_slice",
)
def scatter_to_guarded_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window that is dropped as a whole where it is out of bounds.

        %old = stablehlo.dynamic_slice %operand, %place...
        %new = stablehlo.select (%place == %start), region(%old, %window), %old
        %r   = stablehlo.dynamic_update_slice %operand, %new, %place...

    Equal as in `scatter_to_guarded_dynamic_update_slice`: out of bounds, what was read is written back where it was
    read. The select keeps whatever the region computes from clamped values out of the result, NaN included (trap 19).
    """
    return one_window(op)


@on_tile(
    combiner=READING,
    in_bounds={InBounds.UNKNOWN},
    drops={Drops.ELEMENTS},
    form="updated_slice of the window shifted into bounds, its outside elements masked",
)
def scatter_to_shifted_updated_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower one combined window whose elements are dropped one by one where they are out of bounds (oob=spec).

    The window is moved as in `scatter_to_shifted_dynamic_update_slice`, where the proof stands; the region combines
    each element with what lies at its place, and elements that the window does not cover keep their value by the
    select.
    """
    return one_window(op)


# --- a run of rows ---


@on_rows(
    combiner=ASSIGNING,
    parts={Parts.ONE},
    form="dynamic_update_slice of the rows shifted into bounds, those outside masked",
)
def scatter_to_shifted_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of assigned rows, written at base + 0, ..., base + S - 1.

        %base  = the first index
        %s     = clamp(%base, 0, D - min(S, D))     the nearest place inside
        %moved = dynamic_slice(pad(%rows, S, S), (%s - %base) + S)
        %new   = select(0 <= iota + (%s - %base) < S, %moved, dynamic_slice(%operand, %s))
        %r     = dynamic_update_slice(%operand, %new, %s)

    Equal: row k of the updates is a window of its own, so under either policy it is written where `0 <= base + k < D`
    and dropped elsewhere, whatever becomes of the other rows (trap 4). That is what the shifted window does, element
    by element (the proof stands with `scatter_to_shifted_dynamic_update_slice`, and holds for S > D with the cut to
    the operand's extent). The rows differ, so no order matters. In other dims that may be out of bounds, whole rows are
    dropped by the select or, under oob=spec where they overhang, shifted alike. The index type may wrap around behind
    the last row: such a row is negative natively and beyond the operand here, dropped in both
    (`hlo_lower.facts.scatter.layout`). Costs the update, padded; nothing is buffer-sized.
    """
    return one_window(op)


@on_rows(
    combiner=READING,
    parts={Parts.ONE},
    form="dynamic_slice, the body, select, dynamic_update_slice on the rows shifted into bounds",
)
def scatter_to_shifted_updated_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of rows that are combined with what is there.

    Equal as `scatter_to_shifted_rows` is; each element inside is combined once with what lies at its place, because the
    rows differ, so sums keep their order. Rows outside keep their value by the select, whatever the region computes
    (trap 19).
    """
    return one_window(op)


@on_rows(
    combiner=ASSIGNING,
    parts={Parts.SEVERAL},
    form="two of the shifted windows: the rows moved up from below 0 first, then the others",
)
def scatter_to_wrapped_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of assigned rows whose negative indices have been normalised one by one (trap 39).

    With `x = base + k`, exporters write `select(x < 0, x + A, x)` with A >= D. Rows with x < 0 are the run at base + A,
    the others the run at base:

        %first  = the first index              base + A if base < 0, else base
        %last   = the last index - (S - 1)     base if base + S - 1 >= 0, else base + A
        %part   = the shifted window at %first
        %r      = the shifted window of %part at %last

    Equal: if base >= 0 or base + S - 1 < 0, the run is in one piece, %first = %last, and the second write repeats the
    first. Else %first = base + A and %last = base. At base + A the rows with x >= 0 lie at A or beyond, outside, and at
    base those with x < 0 are negative, so each part writes its own rows. A row of the first part precedes all of the
    second in the updates, so where S > D lets them meet, the later one wins, as natively. A last index out of reach is
    saturated before S - 1 is subtracted, so nothing overflows. Costs twice the update.
    """
    return one_window(op)


@on_rows(
    combiner=READING,
    parts={Parts.SEVERAL},
    form="wrapped_rows with the body; the second window only if it is another one",
)
def scatter_to_wrapped_updated_rows(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of combined rows whose negative indices have been normalised.

    Equal as `scatter_to_wrapped_rows` is. Combined twice, a row would count twice, so the second window is written only
    if %first and %last differ; they are equal just when the run is in one piece.
    """
    return one_window(op)


# --- a short tensor written by a pass over it, for consumers that read the start of a slice on the host ---
#
# A loop waits there for its device at each such read; a select is one kernel, which finds the start in the tensor
# itself.


SHORT = When(
    "a start at run time, and as many elements as short_operand at most",
    lambda facts: (
        facts.offsets is Offsets.RUNTIME
        and facts.parts is Parts.ONE
        and prod(facts.operand_shape) <= facts.costs.short_operand
        and all(extent in (1, size) for extent, size in zip(facts.layout.window, facts.operand_shape, strict=True))
    ),
)

_CLASS: Mapping[str, Any] = {
    "subset": frozenset(Tile) - {Subset.FULL},
    "combiner": ASSIGNING,
    "when": SHORT,
    "form": "select(iota == start in every dim, update, operand)",
}


@rules.lowers(SCATTER, in_bounds={InBounds.ALWAYS}, **_CLASS)
def scatter_to_short_set(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window that lies inside, as `scatter_to_guarded_short_set` does.

    Equal by the same proof, which asks for no bounds.
    """
    return _by_select(op)


@rules.lowers(SCATTER, in_bounds={InBounds.UNKNOWN}, drops={Drops.WINDOWS}, **_CLASS)
def scatter_to_guarded_short_set(op: ScatterLowering) -> Sequence[Value]:
    """Lower one assigned window of a short operand that is dropped where it is out of bounds.

        %hit = and, over the dims that an index addresses: compare EQ, iota, broadcast(%start)
        %r   = select(%hit, broadcast(%window), %operand)

    Equal: the window has extent 1 in each of these dims and is whole in the others, so its places are those whose
    coordinates are the start, and no others change. A start that is negative or beyond the end is the coordinate of no
    place: nothing is written, as the scatter drops the window. At extent 1 both policies are one. One window, so no
    duplicates. The iota is as wide as the start type (trap 7). Costs a pass over the operand.
    """
    return _by_select(op)


def _by_select(op: ScatterLowering) -> Sequence[Value]:
    build, scatter, window = op.build, op.scatter, op.facts.layout.window
    shape = scatter.operand_shape
    if any(window[dim] != 1 for dim in scatter.index_dims):
        raise DoesNotApply("the window is longer than 1 in a dim that an index addresses")
    starts = build.reshape(op.arrangement.indices(build, op.arrangement.parts[0]), (len(scatter.index_dims),))
    hit: Value | None = None
    for dim in range(scatter.rank):
        if dim in scatter.index_dims:
            number = scatter.index_dims.index(dim)
            start = build.reshape(build.slice(starts, [number], [number + 1]), ())
        elif window[dim] == shape[dim]:
            continue
        else:  # a dim that no index addresses is written at 0
            start = build.constant(0, (), scatter.start_type)
        sizes = (shape[dim],)
        here = build.compare(build.iota(sizes, 0, scatter.start_type), "EQ", build.broadcast(start, sizes))
        here = build.broadcast(here, shape, [dim])
        hit = here if hit is None else build.and_(hit, here)
    assert hit is not None
    whole = [dim for dim in range(scatter.rank) if window[dim] == shape[dim] != 1]
    operands = scatter.promoted_operands(build)
    updates = [
        build.broadcast(build.reshape(update, tuple(shape[dim] for dim in whole)), shape, whole)
        for update in op.arrangement.updates(build)
    ]
    proposed = new_values(op, build, updates, updates)  # a region that assigns does not look at what is there
    return [build.select(hit, new, old) for new, old in zip(proposed, operands, strict=True)]


# --- scatters that write nothing, and those of one window that covers the whole operand, in bounds: no part is cut ---


over_all = partial(rules.lowers, SCATTER, subset=Full, in_bounds={InBounds.ALWAYS})


@rules.lowers(SCATTER, subset=Empty, form="the operand, converted if the body promotes")
def scatter_to_operand(op: ScatterLowering) -> Sequence[Value]:
    """Replace a scatter that writes nothing by its operand.

        %r = "stablehlo.scatter"(%operand, %indices, %updates) ...   ->   %operand

    Equal, because Empty means one of: there is no index vector, the window or the operand has no element, every
    window is dropped under the policy, or the region returns the current value. A region wider than the operand
    promotes the result's element type (spec, scatter C24), so the operand is converted. Both policies; any
    duplicates; no cost.
    """
    return op.scatter.promoted_operands(op.build)


@over_all(combiner=ASSIGNING, form="the updates")
def scatter_to_updates(op: ScatterLowering) -> Sequence[Value]:
    """Replace an assignment over everything by its updates.

        %r = "stablehlo.scatter"(%operand, %zeros, %updates) ({ return %update })   ->   transpose, reshape of %updates

    Equal, because Full means one window of the operand's shape that starts at 0 (trap 36: W = D in every dim, start 0,
    one position or positions that make a run, and the region does not read the current value), so each result element
    is its update. Both policies; one window, so no duplicates; no more than a transpose.
    """
    return _whole(op)


@over_all(combiner=READING, form="the body, elementwise on operand and updates")
def scatter_to_elementwise(op: ScatterLowering) -> Sequence[Value]:
    """Replace a combination over everything by the region on whole tensors.

        %r = "stablehlo.scatter"(%operand, %zeros, %updates) ({ return %current + %update })
        ->
        %r = stablehlo.add %operand, %updates

    Equal, because each result element is the region of its current value and its one update, and the region is applied
    to each element on its own (`hlo_lower.facts.scatter.lift`). Both policies; no duplicates; one pass over the
    operand.
    """
    return _whole(op)


def _whole(op: ScatterLowering) -> Sequence[Value]:
    updates = [op.build.reshape(u, op.facts.layout.window) for u in op.arrangement.updates(op.build)]
    currents = op.scatter.promoted_operands(op.build) if op.facts.combiner not in ASSIGNING else updates
    return new_values(op, op.build, currents, updates)


assert {Combiner.NO_OP} | ASSIGNING | READING == set(Combiner)
