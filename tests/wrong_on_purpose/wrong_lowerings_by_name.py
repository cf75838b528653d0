"""Lowerings that are wrong in one way each, as people write them by mistake; the name says in which.

Each builds legal StableHLO and is right but for what its name says. A test hands it to the tool as a plug-in's rule.
"""

from dataclasses import dataclass, replace
from typing import Any

import scatter_programs as p

from hlo_lower.facts.scatter.lift import lift
from hlo_lower.ir import mlir
from hlo_lower.lowering.scatter.one_window import one_window


@dataclass(frozen=True)
class Wrong:
    """A wrong lowering, its module, the policy under which it is wrong, and what the whole module's run says."""

    lowering: Any
    module: p.Module
    oob: str
    alone: str


WRONG = {}

NO_NAN = "equal: the whole module runs on ordinary numbers"
NO_OVERHANG = "not run: XLA drops whole windows, so under oob=spec it is not a judge of windows that may overhang"
NO_PROMOTION = "not run: it returns the narrow type of a promoting region"
NO_ROUNDING = "equal: none of its runs adds updates to one element that round otherwise"


def wrong(module, oob="xla", alone="differs"):
    """Write a wrong lowering down under its own name."""

    def enter(lowering):
        WRONG[lowering.__name__] = Wrong(lowering, module, oob, alone)
        return lowering

    return enter


def combined(op, currents, updates):
    """The scatter's region."""
    return lift(op.build, op.graph, op.scatter.region, currents, updates, None)


def components(op, position):
    """The index vector of a position as scalars, in the start type."""
    indices = op.scatter.canonical_indices(op.build)
    k = len(op.scatter.index_dims)
    flat = op.build.reshape(indices, (op.scatter.positions, k))
    return [op.build.reshape(op.build.slice(flat, [position, c], [position + 1, c + 1]), ()) for c in range(k)]


def windows(op, position):
    """The updates of a position, of the window's shape."""
    shape = op.scatter.window
    found = []
    for update in op.scatter.canonical_updates(op.build):
        flat = op.build.reshape(update, (op.scatter.positions, *shape))
        own = op.build.slice(flat, [position, *(0 for _ in shape)], [position + 1, *shape])
        found.append(op.build.reshape(own, shape))
    return found


def number(op, value):
    """A scalar of the start type."""
    return op.build.constant(value, (), op.scatter.start_type)


def starts_of(op, vector):
    """A start per operand dim."""
    zero = number(op, 0)
    placed = dict(zip(op.scatter.index_dims, vector, strict=True))
    return [placed.get(d, zero) for d in range(op.scatter.rank)]


def within(op, start, limit):
    """Whether 0 <= start <= limit."""
    build = op.build
    low = build.compare(start, "GE", number(op, 0))
    return build.elementwise("and", low, build.compare(start, "LE", number(op, limit)))


def inside(op, starts):
    """Whether the window lies in the operand."""
    found = None
    for start, size, extent in zip(starts, op.scatter.operand_shape, op.scatter.window, strict=True):
        here = within(op, start, size - extent)
        found = here if found is None else op.build.elementwise("and", found, here)
    assert found is not None
    return found


def written(op, operands, starts, updates, *, hit=None, read=None, combine=combined):
    """The operands after one window; hit and read stand in for the check of its bounds and for what is read."""
    build = op.build
    hit = inside(op, starts) if hit is None else hit
    olds = [build.dynamic_slice(v, starts, op.scatter.window) for v in operands]
    currents = olds if read is None else [build.dynamic_slice(v, starts, op.scatter.window) for v in read]
    news = combine(op, currents, updates)
    kept = [build.select(hit, new, old) for new, old in zip(news, olds, strict=True)]
    return [build.dynamic_update_slice(v, k, starts) for v, k in zip(operands, kept, strict=True)]


def one_by_one(op, order=None, **how):
    """Every position in turn."""
    current = op.scatter.promoted_operands(op.build)
    for position in range(op.scatter.positions) if order is None else order:
        starts = starts_of(op, components(op, position))
        current = written(op, current, starts, windows(op, position), **how)
    return current


def hits(op, position):
    """For a scatter into one dim: where the position lands, an i1 per row."""
    [start] = components(op, position)
    shape = op.scatter.operand_shape
    return op.build.compare(op.build.iota(shape, 0, start.element_type), "EQ", op.build.broadcast(start, shape))


def spread(op, value):
    """One number over the operand's shape."""
    return op.build.broadcast(op.build.reshape(value, ()), op.scatter.operand_shape)


def believed(op, *, guarded=False, masked=False):
    """The same, with whole windows dropped, or elements, or, in bounds, nothing at all."""
    dims = tuple(sorted({*op.facts.guarded_dims, *op.facts.masked_dims}))
    facts = replace(op.facts, guarded_dims=dims if guarded else (), masked_dims=dims if masked else ())
    return replace(op, facts=facts)


def placed(op, start_of):
    """Every position in turn, where it is said."""
    current = list(op.scatter.operands)
    for position in range(op.scatter.positions):
        current = written(op, current, start_of(position), windows(op, position))
    return current


def row_by_row(op, current, step):
    """For a scatter into one dim: a step of where a position lands, the rows so far, and its update."""
    for position in range(op.scatter.positions):
        current = step(hits(op, position), current, windows(op, position)[0])
    return current


@wrong(p.ROW)
def off_by_one(op):
    """The row behind the asked one is written."""
    [start] = components(op, 0)
    moved = op.build.elementwise("add", start, number(op, 1))
    return written(
        op, op.scatter.operands, starts_of(op, [moved]), windows(op, 0), hit=inside(op, starts_of(op, [start]))
    )


@wrong(p.ROW)
def negative_index_wraps(op):
    """A negative index counts from the end, as in Python (trap 5)."""
    [start] = components(op, 0)
    size = number(op, op.scatter.operand_shape[0])
    negative = op.build.compare(start, "LT", number(op, 0))
    start = op.build.select(negative, op.build.elementwise("add", start, size), start)
    return written(op, op.scatter.operands, starts_of(op, [start]), windows(op, 0))


@wrong(p.BYTES)
def unsigned_read_as_signed(op):
    """An index above 127 in a byte is taken for a negative one (trap 6)."""
    build, given = op.build, op.scatter.indices
    signed = mlir.tensor_type(given.shape, "i8")
    read = build.op("stablehlo.bitcast_convert", [given], [signed]).results[0]
    start = build.reshape(build.convert(read, op.scatter.start_type), ())
    return written(op, op.scatter.operands, [start], windows(op, 0))


@wrong(p.PAIRS)
def linearised_before_the_check(op):
    """The flat index is in bounds where a component is not, and another row is written (trap 8)."""
    build = op.build
    rows, columns = op.scatter.operand_shape
    [current] = [build.reshape(op.scatter.operands[0], (rows * columns,))]
    for position in range(op.scatter.positions):
        i, j = components(op, position)
        flat = build.elementwise("add", build.elementwise("multiply", i, number(op, columns)), j)
        old = build.dynamic_slice(current, [flat], (1,))
        new = build.reshape(windows(op, position)[0], (1,))
        kept = build.select(within(op, flat, rows * columns - 1), new, old)
        current = build.dynamic_update_slice(current, kept, [flat])
    return [build.reshape(current, (rows, columns))]


@wrong(p.TWO)
def variadic_winner_mixed(op):
    """The first operand keeps the last of several updates, the second one the first of them (trap 17)."""
    forwards = one_by_one(op)
    backwards = one_by_one(op, order=range(op.scatter.positions)[::-1])
    return [forwards[0], backwards[1]]


@wrong(p.CLAIMED_UNIQUE)
def flag_trusted_on_duplicates(op):
    """Where unique_indices is claimed, all current values are read before the first update is written (trap 14)."""
    claimed = "true" in str(op.scatter.node.raw.attributes["unique_indices"])
    return one_by_one(op, read=op.scatter.operands if claimed else None)


@wrong(p.POINTS_ADDED, alone=NO_NAN)
def nan_poisoning_sum(op):
    """Updates are multiplied by 0 or 1, and 0 times NaN or infinity reaches every other element (trap 19)."""
    build, [operand] = op.build, op.scatter.operands
    zero = spread(op, build.zero(mlir.tensor_element(operand.raw.type)))
    equal = {
        "comparison_direction": mlir.parse_attribute("#stablehlo<comparison_direction EQ>"),
        "compare_type": mlir.parse_attribute("#stablehlo<comparison_type FLOAT>"),
    }

    def step(hit, current, update):
        product = build.elementwise("multiply", build.convert(hit, "f32"), spread(op, update))
        nothing = build.op("stablehlo.compare", [product, zero], [hit.raw.type], equal).results[0]
        nothing = build.elementwise("and", nothing, build.elementwise("not", hit))
        return build.select(nothing, current, build.elementwise("add", current, product))

    return [row_by_row(op, operand, step)]


@wrong(p.POINTS_ADDED, alone=NO_NAN)
def negative_zero_lost(op):
    """Elements that nothing is added to have 0 added, and -0 becomes 0 (trap 20)."""
    build, [operand] = op.build, op.scatter.operands
    zero = spread(op, build.zero(mlir.tensor_element(operand.raw.type)))

    def step(hit, current, update):
        return build.elementwise("add", current, build.select(hit, spread(op, update), zero))

    return [row_by_row(op, operand, step)]


@wrong(p.POINTS_MAXIMUM)
def identity_for_untouched(op):
    """Elements that no update reaches become the maximum of nothing, minus infinity (trap 21)."""
    build = op.build
    touched = hits(op, 0)
    for position in range(op.scatter.positions):
        touched = build.elementwise("or", touched, hits(op, position))

    def step(hit, current, update):
        return build.select(hit, build.elementwise("maximum", current, spread(op, update)), current)

    current = row_by_row(op, op.scatter.operands[0], step)
    kind = mlir.tensor_type(op.scatter.operand_shape, "f32")
    lowest = build.op("stablehlo.constant", [], [kind], {"value": mlir.parse_attribute(f"dense<0xFF800000> : {kind}")})
    return [build.select(touched, current, lowest.results[0])]


def summed(op, element):
    """The sums of rows in an element type."""

    def step(hit, current, update):
        added = op.build.elementwise("add", current, spread(op, op.build.convert(update, element)))
        return op.build.select(hit, added, current)

    return row_by_row(op, op.build.convert(op.scatter.operands[0], element), step)


SIMPLE = {
    # an out-of-bounds row is written to the nearest place (trap 2)
    "clamp_for_drop": (p.ROW, lambda op: one_window(believed(op))),
    # the inside part of an overhanging window is written, as the specification has it, where XLA writes nothing
    "element_dropped_where_the_window_must_be": (p.WINDOW, lambda op: one_window(believed(op, masked=True))),
    # nothing of an overhanging window is written, as XLA has it, where the specification writes its inside part
    "window_dropped_where_the_element_must_be": (
        p.WINDOW,
        lambda op: one_window(believed(op, guarded=True)),
        "spec",
        NO_OVERHANG,
    ),
    # a run of rows is dropped as a whole where one of them is out of bounds (trap 4)
    "whole_block_guarded": (p.ROWS, lambda op: one_window(believed(op, guarded=True))),
    # the last row of a run keeps what it was
    "last_row_lost": (p.ROWS, lambda op: one_by_one(op, order=range(op.scatter.positions - 1))),
    # the components go to the dims in the opposite order (trap 12)
    "index_vector_permuted": (p.PAIRS, lambda op: placed(op, lambda n: components(op, n)[::-1])),
    # every batch coordinate is written at the position of the first
    "per_batch_index_ignored": (p.BATCH, lambda op: placed(op, lambda n: [components(op, n)[0], components(op, 0)[1]])),
    # the batch coordinate is read from the index instead of counted (trap 13)
    "batching_position_from_value": (p.BATCH, lambda op: placed(op, lambda n: [components(op, n)[1]] * 2)),
    # of several updates of an element the first one stays (trap 16)
    "first_writer_wins": (p.POINTS, lambda op: one_by_one(op, order=range(op.scatter.positions)[::-1])),
    # of several updates of an element only the last one is added to it
    "duplicates_combined_once": (p.POINTS_ADDED, lambda op: one_by_one(op, read=op.scatter.operands)),
    # the region is given the update first and the current value second (trap 22)
    "arguments_swapped": (p.ROW_SUBTRACTED, lambda op: one_by_one(op, combine=lambda op, c, u: combined(op, u, c))),
    # bfloat16 is summed up in float32 and rounded once, not after each addition (trap 18)
    "wide_accumulation": (p.BFLOATS, lambda op: [op.build.convert(summed(op, "f32"), "bf16")], "xla", NO_ROUNDING),
    # the region computes in float32, but the sums are made in bfloat16 and converted behind it (trap 24)
    "promoted_too_late": (p.PROMOTED, lambda op: [op.build.convert(summed(op, "bf16"), "f32")], "xla", NO_PROMOTION),
}
"""Wrong in a word: the module, and what is built; the policy under which it is wrong, and what its run says."""
for name, (module, lowering, *how) in SIMPLE.items():
    lowering.__name__ = name
    wrong(module, *how)(lowering)
