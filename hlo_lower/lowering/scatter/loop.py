"""The catch-all: a loop over the windows, one after the other, in the order in which a scatter applies them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import captured_values
from hlo_lower.ir.view import Block, Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.scatter.window import write_position
from hlo_lower.ops.names import CONSTANT, REMAINDER, SCATTER
from hlo_lower.ops.subset import Subset


@dataclass(frozen=True)
class Captured:
    """The captured values of a region.

    Attributes:
      constants: those that are constants.
      carried: all others, to be invariant values of the loop.
    """

    constants: tuple[Value, ...]
    carried: tuple[Value, ...]

    def inside(self, build: Builder, taken: Sequence[Value]) -> Mapping[Value, Value]:
        """For each captured value the one to take in the loop's body, given those that came through for `carried`."""
        replaced = dict(zip(self.carried, taken, strict=True))
        for value in self.constants:
            assert value.node is not None
            replaced[value] = build.clone(value.node, [], [value.raw.type]).results[0]
        return replaced


def captured_by(region: Block) -> Captured:
    """What a region captures."""
    values = captured_values(region)
    constants = [v for v in values if v.node is not None and v.node.name == CONSTANT]
    return Captured(tuple(constants), tuple(v for v in values if v not in constants))


rules = RuleList()

WRITTEN = frozenset(Subset) - {Subset.EMPTY}
"""Every subset of which something may be written: what is never written needs no guard and has no layout."""


@rules.lowers(
    SCATTER,
    subset=WRITTEN,
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
    Positions that make a run are one window of the loop (`hlo_lower.facts.scatter.layout`): the rows of a page are
    written at once, as in the rules of rows.

    Costs N iterations, each as large as the window. The loop carries the operands, so a buffer stays in place.
    """
    scatter, build, layout = op.scatter, op.build, op.facts.layout
    n, k = layout.positions, len(scatter.index_dims)
    counter_type = scatter.start_type if n < 1 << 31 else "i64"
    operands = scatter.promoted_operands(build)
    # Without dims of extent 1: XLA copies updates, before the loop, that have been given more of them.
    extents = [size for size in layout.window if size > 1]
    updates = [build.reshape(u, (n, *extents)) for u in op.arrangement.updates(build)]
    parts = op.arrangement.parts
    indices = [build.reshape(op.arrangement.indices(build, p), (n, k)) for p in parts] if k else []
    captured = captured_by(scatter.region)

    def iteration(inner: Builder, counter: Value, current: Values, invariant: Values) -> Sequence[Value]:
        all_updates, rest = invariant[: scatter.arity], invariant[scatter.arity :]
        vectors, taken = rest[: len(indices)], rest[len(indices) :]
        replaced = captured.inside(inner, taken)
        zero = inner.constant(0, (), counter_type)
        windows = [
            inner.reshape(inner.dynamic_slice(u, [counter] + [zero] * len(extents), (1, *extents)), layout.window)
            for u in all_updates
        ]
        own = [inner.reshape(inner.dynamic_slice(v, [counter, zero], (1, k)), (k,)) for v in vectors] or [None]
        coordinates = {
            dim: _coordinate(inner, counter, layout.kept_shape, number, scatter.start_type)
            for dim, number in layout.coordinates.items()
        }
        return write_position(op, inner, current, own, coordinates, windows, replaced)

    loop = StructuredLoop(n, counter_type)
    return loop.emit_while(build, operands, [*updates, *indices, *captured.carried], iteration)


def _coordinate(build: Builder, counter: Value, shape: tuple[int, ...], position: int, element: str) -> Value:
    """Coordinate `position` of the row-major index `counter` into a shape: `counter / stride % size`."""
    stride = 1
    for size in shape[position + 1 :]:
        stride *= size
    value = counter
    if stride > 1:
        value = build.divide(value, build.constant(stride, (), counter.element_type))
    if position > 0:
        value = build.elementwise(REMAINDER, value, build.constant(shape[position], (), counter.element_type))
    return build.convert(value, element)
