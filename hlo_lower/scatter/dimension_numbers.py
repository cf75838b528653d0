"""What the dimension numbers of a scatter say, whatever its sizes: which dims of what belong together.

The names are those of the StableHLO specification, section scatter; `full_start_index` and `full_batching_index` there
are `index_dims` and `batching` here.
"""

from dataclasses import dataclass

from hlo_lower import mlir
from hlo_lower.causes import Cause, Code
from hlo_lower.graph import Block, Node, Value


class NotCanonicalError(ValueError):
    """The scatter has no canonical form here, and why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass(frozen=True)
class ScatterDimensionNumbers:
    """A scatter's dimension numbers, resolved.

    Attributes:
      node: the `stablehlo.scatter`.
      arity: how many operands it has; 1 unless it is variadic.
      index_vector_dim: where the index vector lies in the indices as given; their rank if it is implicit.
      index_dims: for each component of the index vector the operand dim that it addresses.
      batching: for each batching dim (operand dim, scatter dim) whose position it takes.
      update_permutation: dims of the updates as given in the order scatter dims, window dims.
      window_dims: operand dims of those window dims, neither inserted nor batching dims.
      region_types: element type that the region computes each operand in; wider than the operand's if it promotes.
    """

    node: Node
    arity: int
    index_vector_dim: int
    index_dims: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]
    update_permutation: tuple[int, ...]
    window_dims: tuple[int, ...]
    region_types: tuple[mlir.RawType, ...]

    @property
    def operands(self) -> tuple[Value, ...]:
        """The operands, as they are now: an earlier lowering may have replaced them."""
        return self.node.operands[: self.arity]

    @property
    def indices(self) -> Value:
        """The indices as given."""
        return self.node.operands[self.arity]

    @property
    def has_wide_indices(self) -> bool:
        """Whether the indices have a 64-bit type."""
        return self.indices.element_type in ("i64", "ui64")

    @property
    def updates(self) -> tuple[Value, ...]:
        """The updates as given."""
        return self.node.operands[self.arity + 1 :]

    @property
    def region(self) -> Block:
        """The update computation."""
        return self.node.blocks[0]


def read_dimension_numbers(node: Node) -> ScatterDimensionNumbers:
    """Read the dimension numbers of a scatter.

    Raises:
      NotCanonicalError: an element type is quantized or `index`.
    """
    arity = len(node.results)
    for value in node.operands:
        if value.element_type.startswith("!"):
            raise NotCanonicalError(Code.QUANTIZED(value.element_type))
        if value.element_type == "index":
            raise NotCanonicalError(Code.INDEX_ELEMENTS())
    numbers = mlir.scatter_dimension_numbers(node.raw)
    ivd = int(numbers.index_vector_dim)
    update_window_dims = [int(d) for d in numbers.update_window_dims]
    inserted = {int(d) for d in numbers.inserted_window_dims}
    operand_batching = [int(d) for d in numbers.input_batching_dims]
    indices_batching = [int(d) for d in numbers.scatter_indices_batching_dims]
    updates_rank = len(node.operands[arity + 1].shape)
    scatter_dims = [d for d in range(updates_rank) if d not in update_window_dims]
    kept = [d for d in range(len(node.operands[0].shape)) if d not in inserted and d not in operand_batching]
    return ScatterDimensionNumbers(
        node=node,
        arity=arity,
        index_vector_dim=ivd,
        index_dims=tuple(int(d) for d in numbers.scattered_dims_to_operand_dims),
        # A batching dim of the indices counts the index vector's dim as well; a scatter dim does not (trap 13).
        batching=tuple(
            (operand_dim, indices_dim - (indices_dim > ivd))
            for operand_dim, indices_dim in zip(operand_batching, indices_batching, strict=True)
        ),
        update_permutation=(*scatter_dims, *update_window_dims),
        window_dims=tuple(kept),
        region_types=tuple(mlir.tensor_element(a.raw.type) for a in node.blocks[0].arguments[:arity]),
    )
