"""What the dimension numbers of a scatter say, whatever its sizes: which dims of what belong together.

The names are those of the StableHLO specification, section scatter; `full_start_index` and `full_batching_index` there
are `index_dims` and `batching` here.
"""

from dataclasses import dataclass

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import type_range
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value


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

    def beyond(self, start_type: str, index_range: tuple[int, int] | None = None) -> tuple[bool, bool]:
        """Whether an index, of its type or of a range, may be less, and may be more, than a start type holds."""
        least, greatest = index_range or type_range(self.indices.element_type) or (0, 0)
        lowest, highest = type_range(start_type) or (0, 0)
        return least < lowest, greatest > highest

    @property
    def updates(self) -> tuple[Value, ...]:
        """The updates as given."""
        return self.node.operands[self.arity + 1 :]

    def promoted_operands(self, build: Builder) -> list[Value]:
        """The operands in the region's types (trap 24)."""
        return [build.convert(v, t) for v, t in zip(self.operands, self.region_types, strict=True)]

    @property
    def region(self) -> Block:
        """The update computation."""
        return self.node.blocks[0]


def saturate(
    build: Builder, indices: Value, start_type: str, beyond: tuple[bool, bool], highest: int | None = None
) -> Value:
    """Indices in a start type (trap 6).

    Args:
      build: where to build.
      indices: of static shape.
      start_type: an integer type.
      beyond: whether an index may be less, and may be more, than it holds.
      highest: what is beyond every bound, for those that are more; by default the greatest number of the start type.
    """
    least, greatest = type_range(start_type) or (0, 0)
    for is_beyond, op, limit in zip(beyond[::-1], ("minimum", "maximum"), (highest or greatest, least), strict=True):
        if is_beyond:
            bound = build.constant(limit, indices.static_shape, indices.element_type)
            indices = build.elementwise(op, indices, bound)
    return build.convert(indices, start_type)


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
    numbers = mlir.ScatterNumbers.of(node.raw)
    ivd, pairs = numbers.index_vector_dim, (numbers.input_batching_dims, numbers.scatter_indices_batching_dims)
    scatter_dims = [d for d in range(len(node.operands[arity + 1].shape)) if d not in numbers.update_window_dims]
    gone = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    kept = [d for d in range(len(node.operands[0].shape)) if d not in gone]
    return ScatterDimensionNumbers(
        node=node,
        arity=arity,
        index_vector_dim=ivd,
        index_dims=numbers.scatter_dims_to_operand_dims,
        # A batching dim of the indices counts the index vector's dim as well; a scatter dim does not (trap 13).
        batching=tuple((dim, n - (n > ivd)) for dim, n in zip(*pairs, strict=True)),
        update_permutation=(*scatter_dims, *numbers.update_window_dims),
        window_dims=tuple(kept),
        region_types=tuple(mlir.tensor_element(a.raw.type) for a in node.blocks[0].arguments[:arity]),
    )
