"""Where in the operand of a `stablehlo.gather` the element at a place of its result comes from."""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.analysis.linear import Linear
from hlo_lower.analysis.places import Place
from hlo_lower.graph import Node


@dataclass(frozen=True)
class Origin:
    """Where an element of a gather comes from: operand coordinate = start + offset, or the position of a batching dim.

    Attributes:
      starts: for each operand dim that the index vector addresses, the place of its component in the indices.
      offsets: for every operand dim the coordinate within the slice; of a batching dim the coordinate.
    """

    starts: dict[int, Place]
    offsets: tuple[Linear, ...]


def origin_of(node: Node, place: Place) -> Origin:
    """Where the element at a place of a gather's result comes from."""
    numbers = mlir.gather_dimension_numbers(node.raw)
    ivd, rank = numbers.index_vector_dim, len(node.operand(0).shape)
    batch = tuple(c for d, c in enumerate(place) if d not in numbers.offset_dims)
    within = iter(place[d] for d in sorted(numbers.offset_dims))
    offsets: list[Linear] = []
    for dim in range(rank):
        if dim in numbers.operand_batching_dims:
            indices_dim = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dim)]
            offsets.append(batch[indices_dim - (indices_dim > ivd)])
        else:
            offsets.append(Linear(0) if dim in numbers.collapsed_slice_dims else next(within))
    is_implicit = ivd == len(node.operand(1).shape)
    starts = {
        dim: batch if is_implicit else (*batch[:ivd], Linear(k), *batch[ivd:])
        for k, dim in enumerate(numbers.start_index_map)
    }
    return Origin(starts, tuple(offsets))
