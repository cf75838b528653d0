"""The form of a scatter as plain data: shapes and dimension numbers, in terms of what they mean."""

from dataclasses import dataclass

from hlo_lower.testing.fuzz.index_columns import DrawnColumn
from hlo_lower.verify.judges.definitions import ScatterNumbers


@dataclass(frozen=True)
class CaseForm:
    """Shapes and dimension numbers of a legal scatter."""

    operand: tuple[int, ...]  # the operands' shape
    window: tuple[int, ...]  # the window's extents, of the operand's rank; 1 in inserted and batching dims
    inserted: tuple[int, ...]  # the inserted window dims
    batching: tuple[tuple[int, int], ...]  # (operand dim, scatter dim) pairs, sorted by operand dim
    positions: tuple[int, ...]  # N0, ..., Nm, in the order of the indices
    # one per component of the index vector; their dims are `scatter_dims_to_operand_dims`
    columns: tuple[DrawnColumn, ...]
    index_vector_dim: int  # where the index vector stands among the dims of the indices
    implicit: bool  # it stands nowhere: the one component is the indices as they are
    window_places: tuple[int, ...]  # `update_window_dims`

    @property
    def kept_dims(self) -> tuple[int, ...]:
        """The operand dims that the updates' window dims stand for."""
        batching = [d for d, _ in self.batching]
        return tuple(d for d in range(len(self.operand)) if d not in self.inserted and d not in batching)

    @property
    def indices(self) -> tuple[int, ...]:
        """The shape of the indices."""
        if self.implicit:
            return self.positions
        ivd = self.index_vector_dim
        return (*self.positions[:ivd], len(self.columns), *self.positions[ivd:])

    @property
    def updates(self) -> tuple[int, ...]:
        """The shape of the updates."""
        rank = len(self.positions) + len(self.kept_dims)
        window, positions = (self.window[d] for d in self.kept_dims), iter(self.positions)
        return tuple(next(window) if d in self.window_places else next(positions) for d in range(rank))

    @property
    def numbers(self) -> ScatterNumbers:
        """The dimension numbers as the specification names them."""
        ivd = self.index_vector_dim
        return ScatterNumbers(
            update_window_dims=self.window_places,
            inserted_window_dims=self.inserted,
            input_batching_dims=tuple(d for d, _ in self.batching),
            # A batching dim of the indices counts the index vector's dim (trap 13).
            scatter_indices_batching_dims=tuple(p + (not self.implicit and p >= ivd) for _, p in self.batching),
            scatter_dims_to_operand_dims=tuple(c.dim for c in self.columns),
            index_vector_dim=len(self.positions) if self.implicit else ivd,
        )

    def extent(self, column: DrawnColumn) -> tuple[int, int]:
        """Size of the operand and of the window in a column's dim."""
        return self.operand[column.dim], self.window[column.dim]
