"""The canonical scatter (DESIGN section 4): every form of `stablehlo.scatter` brought to one, once.

    indices [N0, ..., Nm, K]          the index vector last, the scatter dims kept apart
    updates [N0, ..., Nm, W0, ..., W(R-1)]   a window of the operand's rank, extent 1 in inserted and batching dims
    start   one per operand dim       from the index vector, from the position (batching dims), or 0

The dimension numbers are those of the StableHLO specification, section scatter; `full_start_index` and
`full_batching_index` there are `index_dims` and `batching` here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from hlo_lower import mlir
from hlo_lower.analysis.interval import type_range
from hlo_lower.graph import Block, Builder, Node, Value


class NotCanonicalError(ValueError):
    """The scatter has no canonical form here, and why."""


@dataclass(frozen=True)
class CanonicalScatter:
    """A scatter in canonical form.

    Attributes:
      node: the `stablehlo.scatter`.
      arity: how many operands it has; 1 unless it is variadic.
      operand_shape: shape of each operand, rank R.
      scatter_shape: N0, ..., Nm.
      window: W0, ..., W(R-1).
      index_vector_dim: where the index vector lies in the indices as given; their rank if it is implicit.
      index_dims: for each component of the index vector the operand dim that it addresses.
      batching: for each batching dim (operand dim, scatter dim) whose position it takes.
      update_permutation: dims of the updates as given in the order scatter dims, window dims.
      window_dims: operand dims of those window dims, neither inserted nor batching dims.
      region_types: element type that the region computes each operand in; wider than the operand's if it promotes.
    """

    node: Node
    arity: int
    operand_shape: tuple[int, ...]
    scatter_shape: tuple[int, ...]
    window: tuple[int, ...]
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
    def updates(self) -> tuple[Value, ...]:
        """The updates as given."""
        return self.node.operands[self.arity + 1 :]

    @property
    def region(self) -> Block:
        """The update computation."""
        return self.node.blocks[0]

    @property
    def positions(self) -> int:
        """How many windows are written: N0 * ... * Nm."""
        return prod(self.scatter_shape)

    @property
    def rank(self) -> int:
        """R."""
        return len(self.operand_shape)

    @property
    def start_type(self) -> str:
        """The integer type that starts and bounds are computed in.

        i32 where the index type is no wider and twice every size fits (`DynamicTile` adds a size to a size; a run is as
        long as its scatter dim), else i64.
        A u32 is saturated before it is converted, so it needs no more; i64 and u64 stay 64 bits wide.
        """
        index_type = self.indices.element_type
        fits = all(size < 1 << 30 for size in (*self.operand_shape, *self.scatter_shape))
        return "i32" if fits and not index_type.endswith("64") else "i64"

    # --- materialization ---

    def promoted_operands(self, build: Builder) -> list[Value]:
        """The operands in the region's types (trap 24)."""
        return [build.convert(v, t) for v, t in zip(self.operands, self.region_types, strict=True)]

    def canonical_updates(self, build: Builder) -> list[Value]:
        """The updates in the region's types, [N0, ..., Nm, W0, ..., W(R-1)]."""
        shape = (*self.scatter_shape, *self.window)
        converted = (build.convert(v, t) for v, t in zip(self.updates, self.region_types, strict=True))
        return [build.reshape(build.transpose(v, self.update_permutation), shape) for v in converted]

    def canonical_indices(self, build: Builder) -> Value:
        """The indices in the start type, [N0, ..., Nm, K]; each keeps its meaning for every bound up to the sizes."""
        indices, ivd = self.indices, self.index_vector_dim
        rank = len(indices.static_shape)
        if ivd < rank:
            indices = build.transpose(indices, [d for d in range(rank) if d != ivd] + [ivd])
        return build.reshape(self._in_start_type(build, indices), (*self.scatter_shape, len(self.index_dims)))

    def _in_start_type(self, build: Builder, indices: Value) -> Value:
        """Widen narrow types; saturate unsigned ones that could become negative at the largest size (trap 6).

        A saturated index is at least every size, so it is out of bounds as it was before.
        """
        _, greatest = type_range(indices.element_type) or (0, 0)
        _, representable = type_range(self.start_type) or (0, 0)
        if greatest > representable:
            beyond = build.constant(max((*self.operand_shape, 1)), indices.static_shape, indices.element_type)
            indices = build.elementwise("minimum", indices, beyond)
        return build.convert(indices, self.start_type)


def canonicalize(node: Node) -> CanonicalScatter:
    """Bring a scatter to canonical form.

    Raises:
      NotCanonicalError: a shape is dynamic, or an element type is quantized.
    """
    arity = len(node.results)
    values = node.operands
    for value in values:
        if not value.is_static:
            raise NotCanonicalError(f"dynamic shape {value.raw.type}")
        if value.element_type.startswith("!"):
            raise NotCanonicalError(f"quantized element type {value.element_type}")
    numbers = mlir.scatter_dimension_numbers(node.raw)
    operand_shape = values[0].static_shape
    updates_shape = values[arity + 1].static_shape
    ivd = int(numbers.index_vector_dim)
    update_window_dims = [int(d) for d in numbers.update_window_dims]
    inserted = {int(d) for d in numbers.inserted_window_dims}
    operand_batching = [int(d) for d in numbers.input_batching_dims]
    indices_batching = [int(d) for d in numbers.scatter_indices_batching_dims]
    scatter_dims = [d for d in range(len(updates_shape)) if d not in update_window_dims]
    kept = [d for d in range(len(operand_shape)) if d not in inserted and d not in operand_batching]
    window = [1] * len(operand_shape)
    for operand_dim, update_dim in zip(kept, update_window_dims, strict=True):
        window[operand_dim] = updates_shape[update_dim]
    return CanonicalScatter(
        node=node,
        arity=arity,
        operand_shape=operand_shape,
        scatter_shape=tuple(updates_shape[d] for d in scatter_dims),
        window=tuple(window),
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


def index_columns(scatter: CanonicalScatter, indices_rank: int) -> Sequence[tuple[int, tuple[slice | int, ...]]]:
    """For each component of the index vector: the operand dim, and the NumPy index of its column in the indices."""
    ivd = scatter.index_vector_dim
    if ivd == indices_rank:
        return [(dim, (slice(None),) * indices_rank) for dim in scatter.index_dims]
    return [
        (dim, tuple(k if d == ivd else slice(None) for d in range(indices_rank)))
        for k, dim in enumerate(scatter.index_dims)
    ]
