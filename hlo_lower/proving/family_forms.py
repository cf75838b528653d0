"""The bounded family of scatters: extents 0 to 3, up to 3 updates (or 2 by 2), windows that overlap."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

EXTENTS = (0, 1, 2, 3)
COUNTS = ((), (0,), (1,), (2,), (3,))
"""Scatter dims: none, which is one window, or up to three positions."""


OPEN = -1
"""An extent that is known at run time only."""


def typed(shape: tuple[int, ...], element: str) -> str:
    """`tensor<shape x element>`."""
    return f"tensor<{'x'.join((*('?' if size == OPEN else str(size) for size in shape), element))}>"


@dataclass(frozen=True)
class FamilyForm:
    """The shapes and dimension numbers of a scatter.

    Attributes:
      operand: the operand's shape.
      window: for each operand dim the window's extent; None where the dim is inserted, or batching.
      indexed: the operand dims that the components of the index vector are for, in their order.
      positions: the scatter dims.
      is_batched: whether dim 0 of the operand is a batching dim, counted by the first scatter dim.
      vector: where the index vector stands: "last", "first", or "implied" (one component).
    """

    operand: tuple[int, ...]
    window: tuple[int | None, ...]
    indexed: tuple[int, ...]
    positions: tuple[int, ...]
    is_batched: bool = False
    vector: str = "last"

    @property
    def components(self) -> int:
        """How many the index vector has."""
        return len(self.indexed)

    @property
    def vector_dim(self) -> int:
        """The index vector dim."""
        return 0 if self.vector == "first" else len(self.positions)

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices' shape."""
        if self.vector == "implied":
            return self.positions
        shape = list(self.positions)
        shape.insert(self.vector_dim, self.components)
        return tuple(shape)

    @property
    def updates(self) -> tuple[int, ...]:
        """The updates' shape: the scatter dims first."""
        return (*self.positions, *(w for w in self.window if w is not None))

    @property
    def limits(self) -> tuple[int, ...]:
        """For each component the last start whose window lies inside; negative where none does."""
        return tuple(self.operand[d] - (1 if self.window[d] is None else self.window[d] or 0) for d in self.indexed)

    @property
    def numbers(self) -> str:
        """The dimension numbers."""
        first, batching = len(self.positions), [0] if self.is_batched else []
        inserted = [d for d, w in enumerate(self.window) if w is None and d not in batching]
        fields = {
            "update_window_dims": list(range(first, len(self.updates))),
            "inserted_window_dims": inserted,
            "input_batching_dims": batching,
            "scatter_indices_batching_dims": [int(self.vector_dim == 0 and self.vector == "first")] if batching else [],
            "scatter_dims_to_operand_dims": list(self.indexed),
            "index_vector_dim": self.vector_dim,
        }
        return f"#stablehlo.scatter<{', '.join(f'{name} = {value}' for name, value in fields.items())}>"

    def __str__(self) -> str:
        sizes = "x".join("_" if w is None else str(w) for w in self.window)
        where = f"{'x'.join(map(str, self.positions))} windows" if self.positions else "1 window"
        return f"{'x'.join(map(str, self.operand))}: {where} of {sizes} at dims {list(self.indexed)}"


PAIRS = ((2, 3), (3, 2), (3, 3), (2, 1), (0, 2))
"""Operand shapes of rank 2; the largest is written by two windows at most."""


def forms() -> Iterator[FamilyForm]:
    """Every form of the family."""
    for size, count in product(EXTENTS, COUNTS):
        yield FamilyForm((size,), (None,), (0,), count)
        yield from (FamilyForm((size,), (w,), (0,), count) for w in (0, 1, 2, 3) if w <= size)
    for pair, count in product(PAIRS, COUNTS):
        if pair != (3, 3) or count != (3,):
            yield from _of_two(pair, count)
    for size, vector, count in product((2, 3), ("first", "implied"), ((), (2,), (3,))):
        yield FamilyForm((size, 2), (None, 2), (0,), count, vector=vector)
    yield from _batched()
    yield from (FamilyForm(shape, (None, None), (0, 1), (2, 2)) for shape in ((2, 3), (3, 3)))


def _of_two(shape: tuple[int, int], count: tuple[int, ...]) -> Iterator[FamilyForm]:
    """Rows, columns, points, and windows that overlap."""
    rows, columns = shape
    yield FamilyForm(shape, (None, columns), (0,), count)
    yield FamilyForm(shape, (rows, None), (1,), count)
    yield FamilyForm(shape, (None, None), (0, 1), count)
    if min(shape) >= 1:
        yield FamilyForm(shape, (None, None), (1, 0), count)
        # What no component is for begins at 0, and the window does not cover it.
        yield FamilyForm(shape, (None, None), (1,), count)
        yield FamilyForm(shape, (None, 1), (0,), count)
        yield FamilyForm(shape, (1, min(columns, 2)), (0, 1), count)
    if min(shape) >= 2:
        yield FamilyForm(shape, (2, 2), (0, 1), count)
        yield FamilyForm(shape, (2, 1), (0,), count)


def _batched() -> Iterator[FamilyForm]:
    """One row or window for each coordinate of a batching dim."""
    for batches, size, vector in product((1, 2, 3), (1, 2, 3), ("last", "first")):
        yield FamilyForm((batches, size), (None, None), (1,), (batches,), is_batched=True, vector=vector)
        yield FamilyForm((batches, size), (None, min(size, 2)), (1,), (batches,), is_batched=True, vector=vector)
    yield FamilyForm((2, 2, 2), (None, None, 2), (1,), (2,), is_batched=True)
