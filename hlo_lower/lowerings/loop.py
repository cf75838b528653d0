"""The catch-all: a loop over the windows, one after the other, in the order in which a scatter applies them."""

from collections.abc import Sequence

from hlo_lower.graph import Builder, Node, Value
from hlo_lower.loop import StructuredLoop
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.lowerings.insert_slice import SHIFTED
from hlo_lower.lowerings.window import write_window
from hlo_lower.registry import RuleList
from hlo_lower.scatter.lift import captured_values
from hlo_lower.subset import DynamicTile

rules = RuleList()


@rules.lowers(
    "stablehlo.scatter",
    emits=(*SHIFTED, "stablehlo.while", "stablehlo.divide", "stablehlo.remainder", "stablehlo.map"),
    form="while over the windows: dynamic_slice, region, guard, dynamic_update_slice",
)
def scatter_to_while(op: ScatterLowering) -> Sequence[Value]:
    """Lower any scatter of static shape, window by window.

        while (i < N) {
          start  = indices[i, :], batching dims from i
          window = updates[i, ...]
          operand = the operand after this window, as in the one-window rules
        }

    Equal, because the loop does what the definition says: it applies scatter position by scatter position in row-major
    order, a whole window each (traps 16 and 45), each window reading what the windows before it left. So duplicates
    compound or the last one wins, consistently across the operands of a variadic scatter (trap 17), and floating-point
    sums keep their order. Drops are decided per window, or per element, as in the one-window rules. Both policies.

    Costs N iterations, each as large as the window. The loop carries the operands, so a buffer stays in place.
    """
    scatter, build = op.scatter, op.build
    n, k = scatter.positions, len(scatter.index_dims)
    counter_type = scatter.start_type if n < 1 << 31 else "i64"
    operands = scatter.promoted_operands(build)
    updates = [build.reshape(u, (n, *scatter.window)) for u in scatter.canonical_updates(build)]
    indices = [build.reshape(scatter.canonical_indices(build), (n, k))] if k else []
    captured = captured_values(scatter.region)
    constants = [v for v in captured if _constant(v) is not None]
    carried_in = [v for v in captured if _constant(v) is None]

    def iteration(
        inner: Builder, counter: Value, current: tuple[Value, ...], invariant: tuple[Value, ...]
    ) -> Sequence[Value]:
        all_updates, rest = invariant[: scatter.arity], invariant[scatter.arity :]
        replaced = dict(zip(carried_in, rest[len(indices) :], strict=True))
        replaced.update((v, _copy_constant(inner, v)) for v in constants)
        zero = inner.constant(0, (), counter_type)
        windows = [
            inner.reshape(
                inner.dynamic_slice(u, [counter] + [zero] * scatter.rank, (1, *scatter.window)), scatter.window
            )
            for u in all_updates
        ]
        starts = _starts(op, inner, counter, rest[0] if k else None)
        tile = DynamicTile(scatter.operand_shape, starts, scatter.window, op.facts.unchecked_dims)
        return write_window(op, inner, tile, current, windows, replaced)

    loop = StructuredLoop(n, counter_type)
    return loop.emit_while(build, operands, [*updates, *indices, *carried_in], iteration)


def _starts(op: ScatterLowering, build: Builder, counter: Value, indices: Value | None) -> tuple[Value, ...]:
    """The start of window `counter` in each operand dim."""
    scatter = op.scatter
    starts: dict[int, Value] = {}
    if indices is not None:
        k = len(scatter.index_dims)
        zero = build.constant(0, (), counter.element_type)
        vector = build.reshape(build.dynamic_slice(indices, [counter, zero], (1, k)), (k,))
        for component, dim in enumerate(scatter.index_dims):
            starts[dim] = build.reshape(build.slice(vector, [component], [component + 1]), ())
    for dim, position in scatter.batching:
        starts[dim] = _coordinate(build, counter, scatter.scatter_shape, position, scatter.start_type)
    missing = [dim for dim in range(scatter.rank) if dim not in starts]
    if missing:
        origin = build.constant(0, (), scatter.start_type)
        starts.update((dim, origin) for dim in missing)
    return tuple(starts[dim] for dim in range(scatter.rank))


def _coordinate(build: Builder, counter: Value, shape: tuple[int, ...], position: int, element: str) -> Value:
    """Coordinate `position` of the row-major index `counter` into a shape: `counter / stride % size`."""
    stride = 1
    for size in shape[position + 1 :]:
        stride *= size
    value = counter
    if stride > 1:
        value = build.elementwise("divide", value, build.constant(stride, (), counter.element_type))
    if position > 0:
        value = build.elementwise("remainder", value, build.constant(shape[position], (), counter.element_type))
    return build.convert(value, element)


def _constant(value: Value) -> Node | None:
    node = value.node
    return node if node is not None and node.name == "stablehlo.constant" else None


def _copy_constant(build: Builder, value: Value) -> Value:
    node = _constant(value)
    assert node is not None
    return build.clone(node, [], [value.raw.type]).results[0]
