"""A sketch of a scatter: operand dims and scatter dims in the simplest order, and then in any order.

`finish` draws all orders that a scatter leaves open: operand dims, scatter dims, index components, the index vector's
place, and the window's places in the updates.
"""

from dataclasses import dataclass, field
from math import prod

from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.draw import Draw
from hlo_lower.testing.fuzz.drawn_types import TYPES
from hlo_lower.testing.fuzz.index_columns import DrawnColumn, Kind, Treatment, permute_column

LONG = {"i8": 130, "ui8": 270, "i16": 140}
"""Extents that the index type does not hold, or hardly (trap 7)."""


@dataclass
class Sketch:
    """Operand dims and scatter dims as they are added."""

    draw: Draw
    index_type: str
    sizes: list[int] = field(default_factory=list[int])
    window: list[int] = field(default_factory=list[int])
    inserted: set[int] = field(default_factory=set[int])
    batching: dict[int, int] = field(default_factory=dict[int, int])
    columns: list[DrawnColumn] = field(default_factory=list[DrawnColumn])
    positions: list[int] = field(default_factory=list[int])

    def scatter_dim(self, size: int) -> int:
        """Add a scatter dim."""
        self.positions.append(size)
        return len(self.positions) - 1

    def dim(self, size: int, window: int, *, inserted: bool = False) -> int:
        """Add an operand dim."""
        self.sizes.append(size)
        self.window.append(window)
        if inserted:
            self.inserted.add(len(self.sizes) - 1)
        return len(self.sizes) - 1

    def batch_dim(self, scatter_dim: int) -> None:
        """Add a batching dim of the operand."""
        self.batching[self.dim(self.positions[scatter_dim], 1)] = scatter_dim

    def holds(self, value: int) -> bool:
        """Whether the index type holds a number."""
        low, high = TYPES[self.index_type].limits
        return low <= value <= high

    def column(self, dim: int, kind: Kind, along: int = 0, offset: int = 0, treatment: Treatment = "") -> None:
        """Add a component of the index vector, without a treatment that the index type does not hold."""
        if not self.holds(self.sizes[dim] + 2) or (self.positions and not self.holds(2 * max(self.positions))):
            treatment, offset = "", 0
        values: tuple[int, ...] = ()
        if kind == "constant":
            values = self.constants(self.sizes[dim], self.window[dim])
        self.columns.append(DrawnColumn(dim, kind, along, offset, treatment, values))

    def constants(self, size: int, window: int) -> tuple[int, ...]:
        """Constant starts: any, evenly spread, or all inside."""
        low, high = TYPES[self.index_type].limits
        count, last = prod(self.positions), max(size - window, 0)
        how = self.draw.choice(("inside", "spread", "any"))
        if how == "spread":
            first, step = self.draw.integer(0, 2), self.draw.choice((1, 2, -1))
            found = [first + step * k for k in range(count)]
        else:
            bounds = (0, last) if how == "inside" else (-window, size + 1)
            found = [self.draw.integer(*bounds) for _ in range(count)]
        return tuple(min(max(v, low), high) for v in found)

    def size(self, low: int = 1) -> int:
        """A size of a dim."""
        return self.draw.integer(low, 6)

    def indexed_dim(self, *, ones: bool = False, kind: Kind | None = None) -> int:
        """Add an indexed dim that the data places: inserted, or with a window of its own."""
        draw = self.draw
        size = LONG[self.index_type] if self.index_type in LONG and draw.chance(25) else self.size()
        if ones or draw.chance(60):
            dim = self.dim(size, 1, inserted=not draw.chance(25))
        else:
            dim = self.dim(size, draw.integer(1, min(size, 6)))
        treatment: Treatment = draw.choice(("", "", "", "", "normalised", "clamped"))
        self.column(dim, kind or draw.choice(("data", "data", "data", "uniform")), treatment=treatment)
        return dim

    def rest(self, most: int, *, partial: bool) -> None:
        """Add dims that are not indexed: whole, in part from 0, or pinned at 0."""
        for _ in range(self.draw.integer(0, most)):
            size = self.size()
            if not partial or self.draw.chance(60):
                self.dim(size, size)
            elif self.draw.chance(50):
                self.dim(size, self.draw.integer(1, size))
            else:
                self.dim(size, 1, inserted=True)

    def finish(self) -> CaseForm:
        """The form, with every order that is left open."""
        draw = self.draw
        dims = draw.permutation(len(self.sizes))
        places = draw.permutation(len(self.positions))
        columns = [permute_column(c, dims, places, self.positions) for c in self.columns]
        columns = [columns[k] for k in draw.permutation(len(columns))]
        implicit = len(columns) == 1 and draw.chance(30)
        m = len(self.positions)
        kept = len(self.sizes) - len(self.inserted) - len(self.batching)
        return CaseForm(
            operand=_reorder(self.sizes, dims),
            window=_reorder(self.window, dims),
            inserted=tuple(sorted(dims[d] for d in self.inserted)),
            batching=tuple(sorted((dims[d], places[p]) for d, p in self.batching.items())),
            positions=_reorder(self.positions, places),
            columns=tuple(columns),
            index_vector_dim=m if implicit else m - (draw.integer(0, m) if draw.chance(35) else 0),
            implicit=implicit,
            window_places=tuple(draw.subset(m + kept, kept)),
        )


def _reorder(values: list[int], numbers: list[int]) -> tuple[int, ...]:
    found = [0] * len(values)
    for value, number in zip(values, numbers, strict=True):
        found[number] = value
    return tuple(found)
