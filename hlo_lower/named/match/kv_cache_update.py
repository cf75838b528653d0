"""kv_cache_update(cache, new, position): the cache with new rows in the place of those from the position on.

    dynamic_update_slice, or a scatter that overwrites      lax.dynamic_update_slice, cache.at[:, positions].set(new),
                                                            torch's index_copy, mapped over a batch
    where(iota == position, new, cache)                     a mask of one position

It is that and nothing else: the new rows have the cache's size along all axes but one, along which the position goes,
which is no constant; they overwrite, and are not made of the cache's own rows; the cache is an argument (of a loop as
well, where it is not the loop's results that are stacked one by one), or was read from one.

Attributes: `axis`; `position_of`: "first" (the first new row), "rows" (each new row) or "batch" (for each entry of
axis 0 its first new row); `negative` = "from_end" where positions below 0 are counted from the end, else "outside";
`outside`: "clamp" (the rows moved to where they fit) or "drop". New rows without the axis are one row.
"""

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block
from hlo_lower.named.match.axis_atoms import View
from hlo_lower.named.match.lookups import compared_places
from hlo_lower.named.match.matches import Found, Match, matchers
from hlo_lower.named.match.positions import (
    Positions,
    beneath_moves,
    columns_of,
    is_counting,
    unwrap_negative,
    vector_of,
)
from hlo_lower.named.match.terms import Term, above
from hlo_lower.ops.names import DYNAMIC_UPDATE_SLICE, SCATTER, SELECT
from hlo_lower.ops.spec import PICKS, short

READS = short(PICKS)

STEPS = 60
"""Most ops that are looked at above new rows for what they are made of."""


@matchers.finds("kv_cache_update", at=(DYNAMIC_UPDATE_SLICE,))
def written_slice(anchor: Term) -> Found:
    """New rows at one position."""
    cache, new, *starts = anchor.operands
    axes = [dim for dim, (n, m) in enumerate(zip(cache.shape, new.shape, strict=True)) if n != m]
    if len(axes) != 1:
        return None
    place = unwrap_negative(starts[axes[0]], cache.shape[axes[0]])
    return _match(anchor, cache, new, place, axes[0], "first", "clamp")


@matchers.finds("kv_cache_update", at=(SCATTER,))
def scatter_of_rows(anchor: Term) -> Found:
    """A scatter of new rows to positions, one for each or one for each entry of the batch; or of one row."""
    if len(anchor.operands) != 3 or not _overwrites(anchor):
        return None
    cache, indices, new = anchor.operands
    numbers = mlir.ScatterNumbers.of(anchor.node.raw)
    axes, vector = numbers.scatter_dims_to_operand_dims, numbers.index_vector_dim
    rank = len(cache.shape)
    if not numbers.input_batching_dims and len(axes) == 1:
        [axis] = axes
        window = tuple(dim for dim in range(rank) if dim != axis)
        places = vector_of(indices, vector, cache.shape[axis])
        if places is None or numbers.inserted_window_dims != axes:
            return None
        if not places.term.shape:
            kept = tuple(cache.shape[dim] for dim in window)
            is_row = new.shape == kept and numbers.update_window_dims == tuple(range(len(kept)))
            return _match(anchor, cache, new, places, axis, "first", "drop") if is_row else None
        if len(places.term.shape) != 1:
            return None
        if numbers.update_window_dims != window or any(new.shape[dim] != cache.shape[dim] for dim in window):
            return None
        return _match(anchor, cache, new, places, axis, "rows", "drop")
    if not numbers.input_batching_dims and len(axes) == 2 and axes == numbers.inserted_window_dims and axes[0] == 0:
        return _of_each_row(anchor, axes[1])
    if numbers.input_batching_dims == (0,) and numbers.scatter_indices_batching_dims == (0,):
        return _of_the_batch(anchor, numbers)
    return None


def _of_each_row(anchor: Term, axis: int) -> Found:
    """Index vectors of the entry of the batch, which counts, and a position."""
    cache, indices, new = anchor.operands
    numbers = mlir.ScatterNumbers.of(anchor.node.raw)
    vector = numbers.index_vector_dim
    columns = columns_of(indices, vector)
    if len(columns) != 2 or len(indices.shape) != 2 or vector != 1:
        return None
    entries = vector_of(columns[0], 1, cache.shape[0])
    places = vector_of(columns[1], 1, cache.shape[axis])
    if entries is None or places is None or entries.term.shape != (cache.shape[0],) or not is_counting(entries.term, 0):
        return None
    kept = tuple(size for dim, size in enumerate(cache.shape) if dim != axis)
    if new.shape != kept or numbers.update_window_dims != tuple(range(1, len(kept))):
        return None
    return _match(anchor, cache, new, places, axis, "batch", "drop")


def _of_the_batch(anchor: Term, numbers: mlir.ScatterNumbers) -> Found:
    """Slices at index vectors that are 0 but for the position, as a mapped dynamic_update_slice has them."""
    cache, indices, new = anchor.operands
    if numbers.inserted_window_dims or numbers.update_window_dims != tuple(range(1, len(cache.shape))):
        return None
    axes = [dim for dim, (n, m) in enumerate(zip(cache.shape, new.shape, strict=True)) if n != m]
    if len(axes) != 1 or axes[0] == 0 or numbers.scatter_dims_to_operand_dims != tuple(range(1, len(cache.shape))):
        return None
    [axis] = axes
    outside = "drop"
    if indices.op == "clamp":
        low, indices, high = indices.operands
        if not low.is_number(0) or not _is_last(high, cache, new):
            return None
        outside = "clamp"
    columns = columns_of(indices, numbers.index_vector_dim)
    if len(columns) != len(cache.shape) - 1 or numbers.index_vector_dim != 1:
        return None
    others = [column for number, column in enumerate(columns) if number != axis - 1]
    places = vector_of(columns[axis - 1], 1, cache.shape[axis])
    if places is None or not all(column.is_number(0) for column in others):
        return None
    return _match(anchor, cache, new, places, axis, "batch", outside)


def _is_last(high: Term, cache: Term, new: Term) -> bool:
    """Whether a bound of index vectors is the last place where a slice fits."""
    wanted = [n - m for n, m in zip(cache.shape[1:], new.shape[1:], strict=True)]
    at = beneath_moves(high)
    if at.op == "minimum":
        at = next((one for one in at.operands if one.op == "constant" and one.scalar is None), at)
    found = at.node.constant() if at.op == "constant" else None
    return found is not None and np.array_equal(found.reshape(-1), wanted)


@matchers.finds("kv_cache_update", at=(SELECT,))
def select_by_position(anchor: Term) -> Found:
    """A select of a new row where the place is the position."""
    test, new, cache = anchor.operands
    root = View.of(test).root(casts=False)
    if root.term.op != "compare" or len(root.term.shape) < 1 or not anchor.is_float:
        return None
    places = compared_places(root.term)
    if places is None or places.positions.shape not in ((), (anchor.shape[0],)):
        return None
    axes = [dim for dim, axis in enumerate(_axes(anchor, test)) if axis == places.axis]
    if len(axes) != 1:
        return None
    [axis] = axes
    row = View.of(new).beneath() if new.op == "broadcast_in_dim" else None
    if row is None or row.term.shape != tuple(1 if d == axis else n for d, n in enumerate(anchor.shape)):
        return None
    kind = "first" if not places.positions.shape else "batch"
    if kind == "batch" and (axis == 0 or _axes(anchor, test)[0] is None):
        return None
    return _match(anchor, cache, row.term, Positions(places.positions, False), axis, kind, "drop")


def _axes(result: Term, test: Term) -> list[int | None]:
    """For each dim of the result the dim of the comparison that stands there."""
    view = View.of(test)
    root = view.root(casts=False)
    dims: dict[int, int] = {id(axis[0]): dim for dim, axis in enumerate(root.axes) if len(axis) == 1}
    return [dims.get(id(axis[0])) if axis else None for axis in view.axes[: len(result.shape)]]


def _overwrites(scatter: Term) -> bool:
    block = scatter.node.raw.regions[0].blocks[0]
    operations = list(block.operations)
    return len(operations) == 1 and operations[0].operation.operands[0] == list(block.arguments)[1]


def _match(
    anchor: Term, cache: Term, new: Term, place: Positions, axis: int, position: str, outside: str
) -> Match | None:
    held = element_type(cache.element)
    if len(cache.shape) < 2 or place.term.scalar is not None or not (held.is_float or held.is_signed):
        return None
    if not _is_kept(cache, axis) or _is_made_of(new, cache):
        return None
    attributes = {"axis": axis, "position_of": position, **place.attributes(outside)}
    return Match("kv_cache_update", {"cache": cache, "new": new, "position": place.term}, [anchor], attributes)


def _is_kept(cache: Term, axis: int, steps: int = 12) -> bool:
    """Whether a cache is an argument, or read from one; not what a loop stacks its results in."""
    at = cache
    while at.op != "argument" and steps:
        steps -= 1
        if at.op not in ("reshape", "transpose", "convert", "dynamic_update_slice", "scatter", *READS):
            return False
        at = at.operands[0]
    if at.op != "argument" or not mlir.is_block_argument(at.raw):
        return False
    around = Block(at.raw.owner).owner
    if around.name != "func.func":
        return not (at is cache and axis == 0)
    graph, number = at.terms.graph, mlir.argument_number(at.raw)
    function = graph.functions[mlir.symbol_name(around.raw.attributes["sym_name"])]
    if function.is_public or not steps:
        return function.is_public
    calls = graph.calls.get(function.name, [])
    given = [at.terms.of(call.raw.operands[number]) for call in calls]
    return all(_is_kept(one, axis if at is cache else -1, steps - 1) for one in given)


def _is_made_of(new: Term, cache: Term) -> bool:
    """Whether new rows are made of the rows that they overwrite: then something else takes the cache as well."""
    if cache.surface is not None and not cache.has_several_users:
        return False
    return any(term is cache for term in above(new, lambda term: term.operands, STEPS))
