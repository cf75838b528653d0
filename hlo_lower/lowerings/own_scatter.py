"""A scatter in the one shape that the consumer's own kernel is right for: rows that have numbers, all in bounds.

Kernels differ in what they do out of bounds, and with dimension numbers that are not those of rows. A target says of
which regions and element types its kernel is right once that is taken from it: `[[keep]]` entries with `when = "safe"`.
"""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.analysis import ASSIGNING
from hlo_lower.graph import Builder, Value
from hlo_lower.graph.axes import shift_along, take_rows
from hlo_lower.lowerings.numbered import AT_RUN_TIME
from hlo_lower.lowerings.scatter_lowering import ScatterLowering
from hlo_lower.registry import RuleList
from hlo_lower.scatter.combine import identity
from hlo_lower.scatter.facts import Drops, Parts, Unique
from hlo_lower.scatter.strategy import Strategy
from hlo_lower.subset import MANY_WINDOWS
from hlo_lower.subset.kinds import Rows

rules = RuleList()

ROWS = (
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1>"
)


@rules.lowers(
    "stablehlo.scatter",
    subset=MANY_WINDOWS,
    offsets=AT_RUN_TIME,
    strategy={Strategy.OWN_SCATTER},
    form="a scatter of rows that are all in bounds; what is dropped writes again what stands there, or nothing new",
)
def scatter_to_safe_scatter(op: ScatterLowering) -> Sequence[Value]:
    """Lower a scatter to one of numbered rows, each in bounds, for a target whose own kernel is right for those.

        %rows = reshape(%operand) : [B * D, W]        %row[b * N + n] = b * D + the row that write n is for
        %r    = reshape(scatter of %updates [B * N, W] into %rows at %row, with the same region)

    Equal: rows are numbered in the order in which the scatter applies them (`hlo_lower.scatter.flat`), so the writes to
    one row keep theirs. Rows are as short as it takes that the operand's dims stay where they are. A write that is
    dropped has the number of no row, and is given one:

    - where the region reads the current value, row 0 of its batch coordinate and an update that changes nothing there:
      the combiner's identity (-0.0 for a sum: -0.0 + 0.0 is 0.0);
    - where it assigns, row and update of the last write before it that is not dropped. Between the two all are dropped,
      so that row still holds this update. Before the first one it writes what row 0 holds, to row 0: nothing was
      written yet.

    Both policies. The kernel has to apply the writes to one row in their order, or the rows have to be proved distinct
    and nothing dropped: that is what the target's entry says. Costs what the kernel does for each row; where writes are
    assigned and may be dropped, log2(N) passes over their numbers and one over the updates.
    """
    return _of_rows(op)


@rules.lowers(
    "stablehlo.scatter",
    subset=Rows,
    combiner=ASSIGNING,
    parts={Parts.SEVERAL},
    strategy={Strategy.OWN_SCATTER},
    form="the same of a run whose negative indices have been normalised one by one",
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
    is_dropping = op.facts.drops is not Drops.NOTHING
    if is_dropping:
        shape = numbers.static_shape
        none = build.constant(flat.rows, shape, numbers.element_type)
        kept = build.compare(numbers, "LT", none)
        if op.facts.combiner in ASSIGNING:
            numbers, update = _repeated(build, kept, numbers, update, operand)
        else:
            numbers = build.select(kept, numbers, build.constant(0, shape, numbers.element_type))
            nothing = identity(build, op.facts.combiner, update.element_type)
            spread = build.broadcast(kept, update.static_shape, [0, 1])
            update = build.select(spread, update, build.broadcast(nothing, update.static_shape))
    numbers = _of_all(build, numbers, flat.rows)
    writes = flat.batches * flat.writes
    node = build.copy_on(
        op.scatter.node,
        [operand, numbers, build.reshape(update, (writes, flat.width))],
        [operand.raw.type],
        {
            "scatter_dimension_numbers": mlir.parse_attribute(ROWS),
            "indices_are_sorted": mlir.parse_attribute("false"),
            "unique_indices": mlir.parse_attribute(
                "true" if op.facts.unique is Unique.PROVED and not is_dropping else "false"
            ),
        },
    )
    return [flat.restored(build, build.reshape(node.results[0], (flat.batches, flat.rows, flat.width)))]


def _of_all(build: Builder, numbers: Value, rows: int) -> Value:
    """The numbers of rows among those of all batch coordinates, [B * N, 1]."""
    batches, writes = numbers.static_shape
    if batches > 1:
        of_batch = build.iota(numbers.static_shape, 0, numbers.element_type)
        stride = build.constant(rows, numbers.static_shape, numbers.element_type)
        numbers = build.elementwise("add", numbers, build.elementwise("multiply", of_batch, stride))
    return build.reshape(numbers, (batches * writes, 1))


def _repeated(build: Builder, kept: Value, numbers: Value, update: Value, operand: Value) -> tuple[Value, Value]:
    """Row numbers [B, N] and updates [B, N, W] with those of the last write that is kept in the place of dropped ones.

    Before the first one it is row 0 of the operand [B * D, W], as it stands there.
    """
    (batches, writes, width), element = update.static_shape, numbers.element_type
    none = build.constant(-1, (), element)
    last = build.select(kept, build.iota(numbers.static_shape, 1, element), build.broadcast(none, numbers.static_shape))
    step = 1
    while step < writes:
        last = build.elementwise("maximum", last, shift_along(build, last, step, none))
        step *= 2
    zero = build.constant(0, numbers.static_shape, element)
    some, place = build.compare(last, "GE", zero), build.elementwise("maximum", last, zero)
    numbers = build.select(some, take_rows(build, numbers, place), zero)
    first = build.reshape(operand, (batches, operand.static_shape[0] // batches, width))
    first = build.reshape(build.slice(first, [0, 0, 0], [batches, 1, width]), (batches, width))
    spread = build.broadcast(some, update.static_shape, [0, 1])
    return numbers, build.select(
        spread, take_rows(build, update, place), build.broadcast(first, update.static_shape, [0, 2])
    )
