"""Scatters with sizes that are known at run time only: one guarded window, or a loop over the windows.

They say the same as the rules of one window and of the loop, with `get_dimension_size` where those have numbers. A
window is placed by clamping its start, and it lies inside where clamping changed nothing: so a bound is needed once, is
built from the actual size (trap 29), and cannot overflow, as `D - W` is computed and no size is added to a start. What
a position reads and writes has extents that are known unless a size may turn out to be 0
(`hlo_lower.lowering.scatter.dynamic_window`).
"""

from collections.abc import Sequence
from functools import partial

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.dynamic import DYNAMIC_SCATTER, Positions, WindowSizes
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.extents import extent_of, product, scalar
from hlo_lower.ir.view import Value
from hlo_lower.lowering.loops.structured import StructuredLoop, Values
from hlo_lower.lowering.scatter.captured import captured_by
from hlo_lower.lowering.scatter.dynamic_window import DynamicScatterLowering, start_type, write_window
from hlo_lower.ops.names import REMAINDER

rules = RuleList()

WRITING = frozenset(Combiner) - {Combiner.NO_OP}

lowers = partial(rules.lowers, DYNAMIC_SCATTER, combiner=WRITING)


@rules.lowers(
    DYNAMIC_SCATTER,
    combiner={Combiner.NO_OP},
    form="the operand",
)
def scatter_to_dynamic_shape_operand(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower a scatter that writes nothing, or the current value: each result is its operand, promoted if the region is.

    Equal, because whatever is written was there before. Costs nothing.
    """
    return op.scatter.promoted_operands(op.build)


@lowers(
    positions={Positions.ONE},
    window_sizes={WindowSizes.STATIC},
    form="dynamic_slice, the region, select, dynamic_update_slice; bounds from get_dimension_size",
)
def scatter_to_dynamic_shape_window(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower one window of static extents in an operand whose sizes are known at run time.

        %place = clamp(0, %start, get_dimension_size(%operand) - W)
        %old   = dynamic_slice %operand, %place
        %new   = select(%place == %start, region(%old, %window), %old)
        %r     = dynamic_update_slice %operand, %new, %place

    Equal: a start is inside exactly where clamping it into [0, D - W] changes nothing; then the window is combined and
    written there. Else it is dropped as a whole: what was read is written back. Under oob=spec only windows of extent 1
    in every dim that may be out of bounds come here, for which both policies agree. Costs the update, in place.
    """
    return _one_window(op)


@lowers(
    positions={Positions.ONE},
    window_sizes={WindowSizes.RUNTIME},
    form="real_dynamic_slice, the region, select, dynamic_update_slice; bounds and sizes from get_dimension_size",
)
def scatter_to_dynamic_shape_runtime_window(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower one window whose extents are known at run time: as a static one, read by `real_dynamic_slice`.

    Equal as there: `real_dynamic_slice` reads [place, place + W), which lies in the operand, as place <= D - W. A
    window is of such extents, too, where an inserted dim of the operand may have no place for it: W there is
    minimum(1, D), so that nothing is read and written where D is 0. Costs the update, in place.
    """
    return _one_window(op)


@lowers(
    window_sizes={WindowSizes.STATIC},
    form="while over the windows, their number from get_dimension_size; each as one window",
)
def scatter_to_dynamic_shape_while(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower any number of windows of static extents, one after the other.

        while (i < N0 * ... * Nm) { position = i in row-major order; the operand after this window }

    Equal, because scatter positions are taken in row-major order, a whole window each (traps 16 and 45), and each is
    read, combined and written as one window. Where elements are dropped one by one (oob=spec, a window that may
    overhang), the window's elements in those dims are further positions, the innermost ones: dropping an element of
    extent 1 is dropping its window, and the order between windows stays. Their starts are computed in i64 from a start
    clamped to [-W, D], so the sum is exact (trap 9). Costs N iterations.
    """
    return _loop(op)


@lowers(
    window_sizes={WindowSizes.RUNTIME},
    form="while over the windows, their number and sizes from get_dimension_size; each as one window",
)
def scatter_to_dynamic_shape_runtime_while(op: DynamicScatterLowering) -> Sequence[Value]:
    """Lower any number of windows whose extents are known at run time, one after the other.

    Equal as `scatter_to_dynamic_shape_while`, each window as `scatter_to_dynamic_shape_runtime_window`. Where there are
    no positions, the loop has no iteration, and its body reads and writes windows that are empty.
    """
    return _loop(op)


def _one_window(op: DynamicScatterLowering) -> list[Value]:
    scatter, build = op.scatter, op.build
    zero = build.constant(0, (), start_type(op))
    coordinates = dict.fromkeys(scatter.scatter_dims, zero)
    return write_window(
        op, build, op.scatter.promoted_operands(op.build), scatter.indices, scatter.updates, coordinates, {}
    )


def _loop(op: DynamicScatterLowering) -> list[Value]:
    scatter, build, facts = op.scatter, op.build, op.facts
    places = scatter.update_dim_of
    loop_dims = [*scatter.scatter_dims, *(places[d] for d in facts.split)]
    extents = [extent_of(build, scatter.updates[0], d, "i32") for d in loop_dims]
    counter_type = "i32" if sum(e != 1 for e in extents) <= 1 else "i64"
    count = scalar(build, product(build, extents, counter_type), counter_type)
    captured = captured_by(scatter.region)

    def iteration(inner: Builder, counter: Value, current: Values, invariant: Values) -> Sequence[Value]:
        indices, updates = invariant[0], invariant[1 : 1 + scatter.arity]
        replaced = captured.inside(inner, invariant[1 + scatter.arity :])
        coordinates = _unravel(inner, counter, updates[0], loop_dims)
        own = {d: inner.convert(c, start_type(op)) for d, c in coordinates.items()}
        return write_window(op, inner, current, indices, updates, own, replaced)

    invariant = [scatter.indices, *scatter.updates, *captured.carried]
    return StructuredLoop(count, counter_type).emit_while(
        build, op.scatter.promoted_operands(op.build), invariant, iteration
    )


def _unravel(build: Builder, counter: Value, updates: Value, dims: Sequence[int]) -> dict[int, Value]:
    """The coordinate in each of these dims of the updates: the row-major index `counter`, taken apart."""
    found: dict[int, Value] = {}
    rest = counter
    for number, dim in reversed(list(enumerate(dims))):
        if updates.shape[dim] == 1:
            found[dim] = build.constant(0, (), counter.element_type)
        elif all(updates.shape[d] == 1 for d in dims[:number]):
            found[dim] = rest
        else:
            extent = extent_of(build, updates, dim, counter.element_type)
            size = scalar(build, extent, counter.element_type)
            found[dim] = build.elementwise(REMAINDER, rest, size)
            rest = build.divide(rest, size)
    return found
