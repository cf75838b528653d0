"""Laws of ops that read or write windows: gathers and updates of slices, slices at places that
are known only when they run. Other slices are looked through by `by_parts`."""

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.verify.parts.op_parts import Goal, OpParts, Run, all_goals, integers


def gather(asked: OpParts) -> list[Goal] | None:
    """Each window is read by itself: positions are cut as the indices, batching dims with them; a window dim that takes
    all of the operand's dim is cut as that, its start being clamped to 0 for a part as for all of it."""
    if not asked.has_same_attributes("slice_sizes"):
        return None
    numbers = mlir.gather_dimension_numbers(asked.first.raw)
    sizes, its_sizes = integers(asked.first, "slice_sizes"), integers(asked.second, "slice_sizes")
    operand = asked.shape(0)
    places = [d for d in range(len(asked.shape(1))) if d != numbers.index_vector_dim]
    positions = [d for d in range(len(asked.result)) if d not in numbers.offset_dims]
    index = {i: asked.run(r) for i, r in zip(places, positions, strict=True)}
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    cut: dict[int, Run] = {d: index[i] for d, i in batching.items()}
    expected = list(sizes)
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windows = [d for d in range(len(operand)) if d not in gone]
    for dim, offset in zip(windows, numbers.offset_dims, strict=True):
        if sizes[dim] == operand[dim]:
            cut[dim] = asked.run(offset)
            expected[dim] = cut[dim][1]
        elif not asked.takes_all(offset):
            return None
    if tuple(expected) != its_sizes:
        return None
    lasts = [operand[d] - sizes[d] for d in numbers.start_index_map]
    last = np.reshape(lasts, [len(lasts) if d == numbers.index_vector_dim else 1 for d in range(len(asked.shape(1)))])
    indices = asked.goal(1, index)
    return all_goals([asked.goal(0, cut), indices and asked.starts(indices, last)])


def dynamic_update_slice(asked: OpParts) -> list[Goal] | None:
    """See `sliced`: of the operand and of the update."""
    return sliced(asked, asked.shape(1), 2)


def dynamic_slice(asked: OpParts) -> list[Goal] | None:
    """See `sliced`: of the operand."""
    return sliced(asked, asked.result, 1)


def sliced(asked: OpParts, sizes: tuple[int, ...], count: int) -> list[Goal] | None:
    """Dims that a slice of these sizes covers are cut alike, in so many operands; a start there is clamped to 0. The
    others are whole."""
    operand = asked.shape(0)
    covered = [d for d in range(len(operand)) if operand[d] == sizes[d]]
    if not all(asked.takes_all(d) for d in range(len(operand)) if d not in covered):
        return None
    runs = {d: asked.run(d) for d in covered}
    starts = [asked.start(d + count, operand[d] - sizes[d]) for d in range(len(operand)) if d not in covered]
    return all_goals([*(asked.goal(k, runs) for k in range(count)), *starts])


WINDOW_LAWS = {
    "stablehlo.gather": gather,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.dynamic_slice": dynamic_slice,
}
