"""`stablehlo.pad` for consumers that put nothing between elements, pad with constants only, or have none."""

from collections.abc import Sequence
from math import prod

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp

rules = RuleList()


@rules.lowers(PLAIN, named={PlainOp.PAD}, form="concatenate with the padding value, and slice what is cut")
def pad_to_concatenate(op: PlainLowering) -> Sequence[Value]:
    """Put the padding value beside elements, rows and planes, dim by dim.

        %r = pad %x, %v, low = [1], high = [-1], interior = [1]
        ->
        [v] ++ reshape([[x0, v], [x1, v], [x2, v]])[:-1], and the last element of that cut

    Equal: the specification pads between the elements first, then at both ends, and where an end is negative cuts so
    many elements there; what is added at the other end is there before. Costs a concatenate and a slice for each dim.
    """
    value, fill = op.node.operands
    low, high, between = (
        op.node.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    for dim in range(len(low)):
        value = spread_along(op.build, value, fill, dim, between[dim])
        value = _extended(op.build, value, fill, dim, (low[dim], high[dim]))
    return [value]


def spread_along(build: Builder, value: Value, fill: Value, dim: int, gap: int) -> Value:
    """So many of a scalar between neighbours of a dim."""
    shape = value.static_shape
    size = shape[dim]
    if not gap or size < 2:
        return value
    before, after = prod(shape[:dim]), prod(shape[dim + 1 :])
    flat = build.reshape(value, (before, size, after))
    joined = build.concatenate([flat, build.broadcast(fill, (before, size, gap * after))], 2)
    spread = build.reshape(joined, (before, size * (gap + 1), after))
    kept = slice_along(build, spread, 1, 0, size * (gap + 1) - gap)
    return build.reshape(kept, (*shape[:dim], size * (gap + 1) - gap, *shape[dim + 1 :]))


def _extended(build: Builder, value: Value, fill: Value, dim: int, ends: tuple[int, int]) -> Value:
    """So many of a scalar at both ends of a dim; as many elements less where that is negative."""
    shape = value.static_shape
    low, high = (build.broadcast(fill, (*shape[:dim], n, *shape[dim + 1 :])) if n > 0 else None for n in ends)
    longer = build.concatenate([part for part in (low, value, high) if part is not None], dim)
    cut_low, cut_high = (max(-n, 0) for n in ends)
    if not cut_low and not cut_high:
        return longer
    return slice_along(build, longer, dim, cut_low, longer.static_shape[dim] - cut_low - cut_high)
