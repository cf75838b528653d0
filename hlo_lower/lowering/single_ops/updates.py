"""`stablehlo.dynamic_update_slice` for consumers that have none: the update is moved to its place, and chosen there."""

from collections.abc import Sequence

from hlo_lower.base.registry import RuleList
from hlo_lower.ir.view import Value
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainLowering, PlainOp
from hlo_lower.ops import names

BUILT = (names.COMPARE, names.DYNAMIC_SLICE, names.IOTA, names.PAD, names.SELECT)
"""What such an update becomes, of which a target may have none."""

rules = RuleList()


@rules.lowers(
    PLAIN,
    named={PlainOp.DYNAMIC_UPDATE_SLICE},
    form="a dynamic_slice of the padded update inside the window; the operand elsewhere",
)
def update_to_padded_slice(op: PlainLowering) -> Sequence[Value]:
    """Read the update from a padded one, so that it stands in its place, and choose it there.

        %r = dynamic_update_slice %x[8], %u[3], %s
        ->
        %at = clamp(0, %s, 5);  %moved = dynamic_slice (pad %u, 5 in front, 5 behind), 5 - %at, 8 elements
        %r  = select(%at <= iota < %at + 3, %moved, %x)

    Equal: element k of the slice is k - %at of the update, where that is one, and the specification clamps the start so
    that the update lies inside. Dims that the update has whole start at 0. Costs the update padded by what it lacks on
    both sides, and a pass over the operand.
    """
    build, [operand, update, *starts] = op.build, op.node.operands
    shape, sizes = operand.static_shape, update.static_shape
    if 0 in sizes:
        return [operand]
    room = [n - size for n, size in zip(shape, sizes, strict=True)]
    padded = build.pad(update, build.zero_of(update), room, room, [0] * len(room))
    reads, inside = list[Value](), None
    for dim, (start, free) in enumerate(zip(starts, room, strict=True)):
        element = start.element_type
        zero, most = (build.constant(n, (), element) for n in (0, free))
        at = build.minimum(build.maximum(start, zero), most) if free else zero
        reads.append(build.subtract(most, at))
        if not free:
            continue
        place, first = build.iota(shape, dim, element), build.broadcast(at, shape)
        last = build.broadcast(build.add(at, build.constant(sizes[dim] - 1, (), element)), shape)
        here = build.and_(build.compare(place, "GE", first), build.compare(place, "LE", last))
        inside = here if inside is None else build.and_(inside, here)
    if inside is None:
        return [update]
    return [build.select(inside, build.dynamic_slice(padded, reads, shape), operand)]
