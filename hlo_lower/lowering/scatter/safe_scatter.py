"""A scatter in the one shape that the consumer's own kernel is right for: rows that have numbers, all in bounds.

Kernels differ in what they do out of bounds, and with dimension numbers that are not those of rows. A target says of
which regions and element types its kernel is right once that is taken from it: `[[keep]]` entries with `when = "safe"`.
"""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.combine import identity
from hlo_lower.facts.scatter.facts import Drops, Parts, Strategy, Unique
from hlo_lower.facts.scatter.strategy_costs import has_spare_row
from hlo_lower.facts.values.region import ASSIGNING
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried, OneOf, Same, Sources
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import ScatterLowering
from hlo_lower.lowering.scatter.numbered_rows import over_rows
from hlo_lower.lowering.scatter.one_window import new_values
from hlo_lower.ops.names import DYNAMIC_SLICE, MAXIMUM, SCATTER, SLICE
from hlo_lower.ops.spec import RESHAPING
from hlo_lower.ops.subset import Rows

rules = RuleList()
lowers = over_rows(rules)

PARTS = RESHAPING | {SLICE, DYNAMIC_SLICE}
"""Ops whose results may lie in the memory of their operand."""

MOST_HELD = 200
"""Values behind one that are looked at; of more it is taken that the operand is among them."""

ROWS = (
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1>"
)


@lowers(
    strategy={Strategy.OWN_SCATTER},
    form="a scatter of rows in bounds; dropped updates go where they are overwritten or change nothing",
)
def scatter_to_safe_scatter(op: ScatterLowering) -> Sequence[Value]:
    """Lower a scatter to one of numbered rows, each in bounds, for a target whose own kernel is right for those.

        %rows = reshape(%operand) : [B * D, W]        %row[b * N + n] = b * D + the row that write n is for
        %r    = reshape(scatter of %updates [B * N, W] into %rows at %row, with the same region)

    Equal: rows are numbered in the order in which the scatter applies them (`hlo_lower.facts.scatter.flat`), so the
    writes to one row keep theirs. Rows are as short as it takes that the operand's dims stay where they are. A write
    that is dropped has the number of no row, and is given one:

    - where the region assigns, the row of the last write of all that is not dropped, and that write is written once
      more in the end: whatever was written to its row, this is what the row holds after the scatter, as no later write
      is kept. Other rows are written by their own writes alone. Where all are dropped it is row 0, and what it held is
      written back;
    - where it reads the current value, a spare row behind the last one, which is cut off again; or, where the operand
      has more rows than there are writes, row 0 and an update that changes nothing there: the combiner's identity
      (-0.0 for a sum: -0.0 + 0.0 is 0.0).

    Both policies. The kernel has to apply the writes to one row in their order, or the rows have to be proved distinct
    and nothing dropped: that is what the target's entry says. Costs what the kernel does for each row; where writes may
    be dropped and are assigned, a pass over their numbers; where they are combined, two over the operand or one over
    the updates.
    """
    return _of_rows(op)


@rules.lowers(
    SCATTER,
    subset=Rows,
    combiner=ASSIGNING,
    parts={Parts.SEVERAL},
    strategy={Strategy.OWN_SCATTER},
    form="safe_scatter for wrapped rows",
)
def scatter_to_safe_scatter_of_run(op: ScatterLowering) -> Sequence[Value]:
    """Lower a run of assigned rows that may come in two parts.

    Equal as `scatter_to_safe_scatter` is: each row has its own index, and nothing is said of where its neighbours lie.
    """
    return _of_rows(op)


def _of_rows(op: ScatterLowering) -> Sequence[Value]:
    build, flat = op.build, op.flat.in_order
    operand = flat.by_rows(build, op.scatter.promoted_operands(build)[0])
    numbers, (update,) = flat.row_numbers(build), flat.updates(build)
    writes, rows = flat.batches * flat.writes, flat.batches * flat.rows
    update = build.reshape(update, (writes, flat.width))
    if op.facts.drops is Drops.NOTHING:
        result = _scatter(op, operand, _of_all(build, numbers, flat.rows), update)
    else:
        none = build.constant(flat.rows, numbers.static_shape, numbers.element_type)
        kept = build.reshape(build.compare(numbers, "LT", none), (writes,))
        numbers = _of_all(build, numbers, flat.rows)
        if op.facts.combiner in ASSIGNING:
            result = _of_assigned(op, operand, numbers, update, kept)
        elif has_spare_row(flat):
            numbers = build.select(kept, numbers, build.constant(rows, (writes,), numbers.element_type))
            result = _with_spare_row(op, operand, numbers, update)
        else:
            numbers = build.select(kept, numbers, build.constant(0, (writes,), numbers.element_type))
            nothing = identity(build, op.facts.combiner, update.element_type)
            spread = build.broadcast(kept, update.static_shape, [0])
            update = build.select(spread, update, build.broadcast(nothing, update.static_shape))
            result = _scatter(op, operand, numbers, update)
    return [flat.to_operand_shape(build, build.reshape(result, (flat.batches, flat.rows, flat.width)))]


def _with_spare_row(op: ScatterLowering, operand: Value, numbers: Value, update: Value) -> Value:
    """The scatter into an operand with one row more, which is cut off again."""
    build = op.build
    padded = build.pad(operand, build.zero_of(operand), [0, 0], [1, 0])
    return build.slice(_write_rows(op, padded, numbers, update), [0, 0], operand.static_shape)


def _scatter(op: ScatterLowering, operand: Value, numbers: Value, update: Value) -> Value:
    """The scatter of updates [n, W] into the rows of an operand [D, W] that numbers [n] name.

    The operand gets a row more, and so a memory of its own, where updates may be a part of it: a kernel reads a later
    update after it wrote an earlier one there (IREE's, of two writes to one row), or is not compiled where operand and
    updates are one value.
    """
    if operand.raw.type == update.raw.type or _may_be_part(op):
        return _with_spare_row(op, operand, numbers, update)
    return _write_rows(op, operand, numbers, update)


def _write_rows(op: ScatterLowering, operand: Value, numbers: Value, update: Value) -> Value:
    build = op.build
    is_unique = op.facts.unique is Unique.PROVED and op.facts.drops is Drops.NOTHING
    node = build.copy_on(
        op.scatter.node,
        [operand, build.reshape(numbers, (*numbers.static_shape, 1)), update],
        [operand.raw.type],
        {
            "scatter_dimension_numbers": mlir.parse_attribute(ROWS),
            "indices_are_sorted": mlir.parse_attribute("false"),
            "unique_indices": mlir.parse_attribute("true" if is_unique else "false"),
        },
    )
    return node.results[0]


def _may_be_part(op: ScatterLowering) -> bool:
    """Whether updates may lie in the memory of the operand, as slices of it do, also those that a loop returns."""
    sources, (operand,), (update,) = Sources(op.graph), op.scatter.operands, op.scatter.updates
    written, read = (_held_by(sources, value) for value in (operand, update))
    return max(len(written), len(read)) > MOST_HELD or any(_are_alike(a, b) for a in written for b in read)


def _held_by(sources: Sources, value: Value) -> set[Value]:
    """The values that a value may be a part of, itself included."""
    found, pending = set[Value](), [Site(value)]
    while pending and len(found) <= MOST_HELD:
        site = pending.pop()
        if site.value in found:
            continue
        found.add(site.value)
        match sources.of(site):
            case Same(one):
                pending.append(one)
            case OneOf(several):
                pending += several
            case Carried(initial=initial, following=following):
                pending += initial, following
            case Node() as node if node.name in PARTS:
                pending.append(site.to(node.operand(0)))
            case _:
                pass
    return found


def _are_alike(one: Value, other: Value) -> bool:
    """Whether two values are one, or may be, because ops of one name made them: compilers keep one of equal values."""
    makers = one.node, other.node
    is_twin = makers[0] is not None and makers[1] is not None and makers[0].name == makers[1].name
    return one == other or (is_twin and one.raw.type == other.raw.type)


def _of_assigned(op: ScatterLowering, operand: Value, numbers: Value, update: Value, kept: Value) -> Value:
    """The scatter with the row of the last write that is kept for those that are not, and this one written again.

    The row's end is known before the scatter, so that no consumer has to keep the operand beside the result.
    """
    build, element = op.build, numbers.element_type
    writes, width = update.static_shape
    one = (1, width)
    none, zero = build.constant(-1, (), element), build.constant(0, (), element)
    place = build.select(kept, build.iota((writes,), 0, element), build.broadcast(none, (writes,)))
    last = reduce_along(build, place, none, 0, MAXIMUM)
    some, last = build.compare(last, "NE", none), build.maximum(last, zero)
    row = build.select(some, build.reshape(build.dynamic_slice(numbers, [last], (1,)), ()), zero)
    final = build.dynamic_slice(update, [last, zero], one)
    (final,) = new_values(op, build, [final], [final])
    final = build.select(build.broadcast(some, one), final, build.dynamic_slice(operand, [row, zero], one))
    numbers = build.select(kept, numbers, build.broadcast(row, (writes,)))
    return build.dynamic_update_slice(_scatter(op, operand, numbers, update), final, [row, zero])


def _of_all(build: Builder, numbers: Value, rows: int) -> Value:
    """The numbers [B, N] of rows as those of the rows of all batch coordinates, [B * N]."""
    batches, writes = numbers.static_shape
    if batches > 1:
        of_batch = build.iota(numbers.static_shape, 0, numbers.element_type)
        stride = build.constant(rows, numbers.static_shape, numbers.element_type)
        numbers = build.add(numbers, build.multiply(of_batch, stride))
    return build.reshape(numbers, (batches * writes,))
