"""Few windows: ops of its own for each."""

from collections.abc import Sequence

import numpy as np

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import Offsets, Strategy
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.view import Value
from hlo_lower.lowering.engine.op import ScatterLowering
from hlo_lower.lowering.scatter.window import write_position
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS

rules = RuleList()


@rules.lowers(
    SCATTER,
    subset=MANY_WINDOWS,
    offsets={Offsets.RUNTIME, Offsets.UNSOLVED},
    strategy={Strategy.FEW_WINDOWS},
    form="for each window one of the one-window forms, one after the other",
)
def scatter_to_unrolled(op: ScatterLowering) -> Sequence[Value]:
    """Lower few windows, one after the other.

        %0 = the one-window form on %operand at start[0]
        %1 = the one-window form on %0 at start[1]

    Equal, because this is what the scatter does, position by position in row-major order, each window reading what
    those before it left and dropped by itself as in the one-window rules. So duplicates compound or the last one wins,
    and sums keep their order. Both policies. Costs the update, and as many ops as there are windows; a buffer is
    written in place.
    """
    build, layout = op.build, op.facts.layout
    positions, k = layout.positions, len(op.scatter.index_dims)
    updates = [build.reshape(u, (positions, *layout.window)) for u in op.arrangement.updates(build)]
    parts = op.arrangement.parts
    vectors = [build.reshape(op.arrangement.indices(build, p), (positions, k)) if k else None for p in parts]
    current: list[Value] = op.scatter.promoted_operands(build)
    for number, coordinate in enumerate(np.ndindex(*layout.kept_shape)):
        own = [None if v is None else build.reshape(slice_along(build, v, 0, number, 1), (k,)) for v in vectors]
        windows = [build.reshape(slice_along(build, u, 0, number, 1), layout.window) for u in updates]
        starts = {
            dim: build.constant(int(coordinate[n]), (), op.scatter.start_type) for dim, n in layout.coordinates.items()
        }
        current = write_position(op, build, current, own, starts, windows)
    return current
