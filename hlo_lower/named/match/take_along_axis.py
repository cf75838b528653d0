"""take_along_axis(x, positions): result[.., i, ..] = x[.., positions[.., i, ..], ..], along one axis.

    gather of single elements, all other axes batched       jnp.take_along_axis, or a mapped x[i]
    gather by index vectors in which all but one count      x[jnp.arange(n), positions], beneath wraps of negatives

It is that and nothing else: each element of the result has the places of its own in all other axes, which the gather's
numbers say, or iotas that are computed. Attributes: `axis`; `negative` = "from_end" where positions below 0 are counted
from the end, else "outside"; `outside`: "clamp", or "fill" where what is out of bounds becomes NaN (of integers the
lowest number, of unsigned ones the largest). Positions without the axis are those of one element each.
"""

from hlo_lower.ir import mlir
from hlo_lower.named.match.found import Found, Match, matchers
from hlo_lower.named.match.positions import Positions, columns_of, filled, is_counting, unwrapped, vector_of
from hlo_lower.named.match.terms import Term
from hlo_lower.ops.names import GATHER


@matchers.finds("take_along_axis", at=(GATHER,))
def take_along_axis(anchor: Term) -> Found:
    """Elements of a value at positions along one axis."""
    x, indices = anchor.operands
    if any(size != 1 for size in anchor.integers("slice_sizes")) or len(x.shape) < 2:
        return None
    numbers = mlir.gather_dimension_numbers(anchor.node.raw)
    vector = numbers.index_vector_dim
    if vector != len(indices.shape) - 1:
        return None
    if len(numbers.start_index_map) == 1:
        axis = numbers.start_index_map[0]
        others = tuple(dim for dim in range(len(x.shape)) if dim != axis)
        if numbers.operand_batching_dims != others or x.shape[axis] == 1:
            return None
        places = vector_of(indices, vector, x.shape[axis])
        batching = numbers.start_indices_batching_dims
    elif not numbers.operand_batching_dims and numbers.start_index_map == tuple(range(len(x.shape))):
        found = _beside_counting(x, indices, vector)
        if found is None:
            return None
        axis, places = found
        others = batching = tuple(dim for dim in range(len(x.shape)) if dim != axis)
        if len(places.term.shape) < len(x.shape):
            batching = tuple(range(len(others)))
    else:
        return None
    if places is None or batching not in (others, tuple(range(len(others)))):
        return None
    is_single = len(places.term.shape) == len(others)
    if len(places.term.shape) != len(others) + (not is_single) or (not is_single and batching != others):
        return None
    result = filled(anchor)
    attributes = {"axis": axis, **places.attributes("clamp" if result is None else "fill")}
    result = _without_axis(result or anchor, places.term.shape)
    if result is None:
        return None
    return Match("take_along_axis", {"x": x, "positions": places.term}, [result], attributes)


def _beside_counting(x: Term, indices: Term, vector: int) -> tuple[int, Positions] | None:
    """The one axis of index vectors whose number is a position; along all others they count."""
    columns = columns_of(indices, vector)
    if len(columns) != len(x.shape) or any(beneath is indices for beneath in columns):
        return None
    rank = len(indices.shape) - 1
    chosen: list[int] = []
    for axis, column in enumerate(columns):
        at = axis if rank == len(x.shape) else axis - len(chosen)
        if at < rank and column.shape[at] == x.shape[axis] and _counts(column, at, vector):
            continue
        chosen.append(axis)
    if len(chosen) != 1 or rank not in (len(x.shape), len(x.shape) - 1):
        return None
    places = vector_of(columns[chosen[0]], vector, x.shape[chosen[0]])
    return None if places is None else (chosen[0], places)


def _counts(column: Term, dim: int, vector: int) -> bool:
    places = vector_of(column, vector, column.shape[dim])
    if places is not None:
        return is_counting(places.term, dim)
    return is_counting(unwrapped(column, column.shape[dim]).term, dim)


def _without_axis(result: Term, shape: tuple[int, ...]) -> Term | None:
    """What has the shape of the positions: a mapped gather has an axis of one more."""
    if result.shape == shape:
        return result
    user = result.only_user
    is_squeezed = user is not None and user.op == "reshape" and user.shape == shape
    return user if is_squeezed and [n for n in result.shape if n != 1] == [n for n in shape if n != 1] else None
