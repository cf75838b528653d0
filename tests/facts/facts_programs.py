"""Random scatters whose indices are computed by random programs: what is claimed of them has to hold when they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from facts_expressions import Expressions
from facts_lines import Shape, Term
from untyped_mlir import SHORT_NUMBERS, function, of

from hlo_lower.testing.fuzz.draw import Draw, Seeded
from hlo_lower.testing.fuzz.drawn_types import INDEX_TYPES, TYPES
from hlo_lower.testing.fuzz.index_columns import Array
from hlo_lower.verify.judges.definitions import ScatterNumbers

FINAL_TYPES = ("i32", "i32", "i32", "i32", "i32", "i32", "i64", "i8", "i16", "ui32", "ui8", "ui64", "ui16")
LONG = (100, 127, 128, 129, 200, 300)
"""Extents beyond what a narrow type holds."""
REGIONS = ("assign", "assign", "add", "maximum")


@dataclass(frozen=True)
class Program:
    """A scatter and what computes its indices."""

    seed: int
    lines: Expressions
    operand_shape: Shape
    updates: Term
    indices: Term
    numbers: ScatterNumbers
    region: str

    @property
    def header(self) -> str:
        return ", ".join(f"{a.name}: {a.type}" for a in self.lines.arguments)

    def computing(self) -> str:
        """A private function that returns the indices and the updates."""
        text = function(f"private @p{self.seed}", self.header, self.lines.returning(self.indices, self.updates))
        return text + "".join(self.lines.functions)

    @cached_property
    def scattering(self) -> str:
        """A public function that scatters."""
        values = ((short, getattr(self.numbers, name)) for short, name in SHORT_NUMBERS.items())
        told = ", ".join(f"{short}={v if short == 'ivd' else list(v)}" for short, v in values if v != ())
        put = f"%r = scatter(%operand, {self.indices}, {self.updates}) <{told}> {{{self.region}}}"
        arguments = f"%operand: {of(self.operand_shape, 'i32')}, {self.header}"
        return function(f"public @p{self.seed}", arguments, "\n".join([*self.lines.text, put])) + "".join(
            self.lines.functions
        )

    def inputs(self, number: int) -> list[Array]:
        """A set of hostile arguments."""
        rng = np.random.default_rng([self.seed, number])
        return [_values(rng, a.shape, a.element, max(self.operand_shape)) for a in self.lines.arguments]


def program_of_seed(seed: int) -> Program:
    """The program of a seed."""
    draw = Draw(Seeded(0x1DEA, seed))
    positions = [draw.choice((4, 6, 8, 3, 2, 5, 9, 12))]
    if draw.chance(35):
        positions.append(draw.choice((2, 3, 4, 5, 8)))
    if draw.chance(12):
        positions.append(draw.choice((2, 1, 3)))
    if draw.chance(10) and len(positions) == 1:
        positions = [draw.choice((40, 64))]
    return _Sketch(draw, seed, tuple(positions)).program()


class _Sketch:
    """A program that is being drawn."""

    def __init__(self, draw: Draw, seed: int, positions: Shape) -> None:
        self.draw, self.seed, self.positions = draw, seed, positions
        self.operand: list[int] = []
        self.window: list[int] = []
        self.inserted: list[int] = []
        self.batching: list[tuple[int, int]] = []
        self.indexed: list[int] = []
        self.plan, self.own, self.own_dim = "", 0, 0
        self._draw_dims()
        types = tuple(draw.choice(INDEX_TYPES) for _ in range(3))
        self.lines = Expressions("v", draw=draw, sizes=positions, types=types, symbol=f"p{seed}")

    def _dim(self, size: int, window: int, *, inserted: bool = False) -> int:
        self.operand.append(size)
        self.window.append(window)
        if inserted:
            self.inserted.append(len(self.operand) - 1)
        return len(self.operand) - 1

    def _draw_dims(self) -> None:
        """Operand dims: indexed ones, batching ones, and what windows cover, in any order."""
        draw = self.draw
        batchable = [n for n, size in enumerate(self.positions) if size > 1]
        if draw.chance(30):
            self._draw_plan(batchable or [0])
            return
        kinds = ["indexed"] * draw.choice((1, 2, 1, 1, 2, 3, 1, 0))
        kinds += ["whole"] * draw.integer(0, 1) + ["part"] * draw.chance(10)
        if len(batchable) > 1 and draw.chance(20):
            kinds.append("batching")
        for k in draw.permutation(len(kinds)):
            kind = kinds[k]
            if kind == "indexed":
                size = draw.choice((*self.positions * 3, 8, 5, 16, draw.choice(LONG) if draw.chance(40) else 7))
                window = draw.integer(2, 3) if size > 3 and draw.chance(15) else 1
                self.indexed.append(self._dim(size, window, inserted=window == 1 and draw.chance(80)))
            elif kind == "batching":
                n = draw.choice(batchable)
                self.batching.append((self._dim(self.positions[n], 1), n))
            else:
                size = draw.integer(2, 3)
                self._dim(size, size if kind == "whole" else size - 1)
        if not self.operand:
            self._dim(3, 3)
        self.indexed = [self.indexed[k] for k in draw.permutation(len(self.indexed))]

    def _draw_plan(self, batchable: Sequence[int]) -> None:
        """Dims for columns that are made for each other.

        alone, beside: a column that may be a run or the coordinate, by itself or with another one along its dim;
        across: a run inside, and sorted rows along another scatter dim.
        """
        draw = self.draw
        self.own = draw.choice(batchable)
        self.plan = draw.choice(("alone", "beside", "across") if len(batchable) > 1 else ("alone", "beside"))
        size = self.positions[self.own]
        first = draw.chance(50)
        if self.plan != "alone" and first:
            self.indexed.append(self._dim(draw.choice((*self.positions, 8)), 1, inserted=True))
        extent = size + 3 * (self.plan == "across" or draw.chance(20))
        self.indexed.append(self._dim(extent, 1, inserted=draw.chance(80)))
        self.own_dim = self.indexed[-1]
        if self.plan != "alone" and not first:
            self.indexed.append(self._dim(draw.choice((*self.positions, 8)), 1, inserted=True))

    def _planned(self, dim: int, final: str) -> tuple[Term, int]:
        """A column of the plan, and along which scatter dim it goes."""
        lines, size = self.lines, self.positions[self.own]
        if dim == self.own_dim and self.plan != "across":
            return lines.congruent(size, final), self.own
        if dim == self.own_dim:
            base = lines.broadcast(lines.clamp(0, lines.argument((), final), 3), (size,), ())
            return lines.like("add", base, lines.iota((size,), 0, final)), self.own
        if self.plan == "beside":
            return lines.expression((size,)), self.own
        n = self.draw.choice([n for n in range(len(self.positions)) if n != self.own])
        inside = lines.clamp(0, lines.argument((self.positions[n],), final), self.operand[dim] - 1)
        return lines.sort([inside], 0)[0], n

    def _column(self, dim: int, final: str) -> Term:
        """Starts in an operand dim, at all positions."""
        self.lines.sizes = (self.operand[dim],) * 4 + self.positions
        draw, lines, positions = self.draw, self.lines, self.positions
        n = draw.integer(0, len(positions) - 1)
        kind = draw.choice(("line", "line", "line", *["idiom"] * 4, "plane", "scalar", "coordinate"))
        if self.plan:
            found, n = self._planned(dim, final)
        elif kind == "plane":
            found = lines.expression(positions)
        elif kind == "scalar":
            found = lines.expression(())
        else:
            if kind == "idiom":
                found = lines.idiom(positions[n], self.operand[dim], final)
            elif kind == "line":
                found = lines.expression((positions[n],))
            else:
                found = lines.iota((positions[n],), 0, lines.an_element())
                if draw.chance(50):
                    found = lines.step(found)
        found = lines.convert(found, final) if found.element != final else found
        if found.shape == positions:
            return found
        dims = [] if not found.shape else [n]
        return lines.broadcast(found, positions, dims)

    def _indices(self) -> tuple[Term, int]:
        """The index tensor and where its vectors stand."""
        draw, lines, rank = self.draw, self.lines, len(self.positions)
        final = draw.choice(FINAL_TYPES)
        columns = [self._column(dim, final) for dim in self.indexed]
        if draw.chance(30):
            for k, dim in enumerate(self.indexed):
                high = self.operand[dim] - self.window[dim]
                if high <= TYPES[final].limits[1]:
                    columns[k] = lines.clamp(0, columns[k], high)
        if len(columns) == 1 and draw.chance(15):
            return columns[0], rank
        ivd = draw.choice((rank, rank, *range(rank)))
        shape = (*self.positions[:ivd], 1, *self.positions[ivd:])
        if not columns:
            empty = (*self.positions[:ivd], 0, *self.positions[ivd:])
            return lines.constant([], empty, final), ivd
        dims = [d + (d >= ivd) for d in range(rank)]
        columns = [lines.broadcast(c, shape, dims) for c in columns]
        return (lines.concatenate(columns, ivd) if len(columns) > 1 else columns[0]), ivd

    def program(self) -> Program:
        """The program."""
        draw, rank = self.draw, len(self.positions)
        indices, ivd = self._indices()
        batching = [d for d, _ in self.batching]
        kept = [d for d in range(len(self.operand)) if d not in self.inserted and d not in batching]
        places = draw.subset(rank + len(kept), len(kept))
        window, positions = iter([self.window[d] for d in kept]), iter(self.positions)
        shape = tuple(next(window) if d in places else next(positions) for d in range(rank + len(kept)))
        constant = [d for d in range(len(shape)) if draw.chance(60)] if draw.chance(30) else []
        varying = [d for d in range(len(shape)) if d not in constant]
        updates = self.lines.argument(tuple(shape[d] for d in varying), "i32")
        if constant:
            updates = self.lines.broadcast(updates, shape, varying)
        implicit = len(indices.shape) == rank
        numbers = ScatterNumbers(
            *(tuple(places), tuple(sorted(self.inserted)), tuple(batching)),
            tuple(n + (not implicit and n >= ivd) for _, n in self.batching),
            *(tuple(self.indexed), ivd),
        )
        region = draw.choice(REGIONS)
        return Program(self.seed, self.lines, tuple(self.operand), updates, indices, numbers, region)


def _values(rng: np.random.Generator, shape: Sequence[int], element: str, extent: int) -> Array:
    """Values of a type, of one kind each time: inside, near a border, at the ends of types, anything, all equal."""
    if element == "i1":
        return np.asarray(rng.random(tuple(shape)) < rng.choice([0.5, 0.0, 1.0]))
    low, high = TYPES[element].limits
    kind, count = int(rng.integers(7)), prod(shape)
    borders = [-1, 0, 1, 2, extent - 1, extent, extent + 1, 127, 128, -128, -129, 255, 256, 1 << 31, (1 << 31) - 1]
    borders += [-(1 << 31), low, low + 1, high, high - 1, -100, 100]
    if kind == 0:
        found = [int(v) for v in rng.integers(0, extent, count)]
    elif kind == 1:
        found = [int(v) for v in rng.integers(-4, 13, count)]
    elif kind in (2, 3):
        found = [borders[int(rng.integers(len(borders)))] for _ in range(count)]
    elif kind == 4:
        found = [int.from_bytes(rng.bytes(8), "little") for _ in range(count)]
    elif kind == 5:
        found = [int(rng.choice([0, 1, extent - 1, -1]))] * count
    else:
        found = [int(v) for v in rng.integers(-140, 140, count)]
    wrapped = [low + (v - low) % (high - low + 1) for v in found]
    return np.asarray(wrapped, object).reshape(tuple(shape)).astype(TYPES[element].dtype)
