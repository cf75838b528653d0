"""Windows at constant places, solved at conversion time: no index is computed at run time, and no bound is checked.

`hlo_lower.facts.scatter.constant_map` takes the windows apart into rows, drops those outside under the policy, and
keeps of several assignments to one row the last. What is left are rows of the updates and the different rows where
they land.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

import numpy as np

from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.constant_map import ConstantMap, Piece, row_major_boxes
from hlo_lower.facts.scatter.facts import Dialect, Offsets, Strategy
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.engine.kind import ScatterLowering
from hlo_lower.lowering.scatter.one_window import new_values, reads_current
from hlo_lower.ops.names import COMPOSITE, SCATTER
from hlo_lower.ops.subset import MANY_WINDOWS

rules = RuleList()
lowers = partial(rules.lowers, SCATTER, subset=MANY_WINDOWS, offsets={Offsets.CONSTANT})


@lowers(strategy={Strategy.FEW_WINDOWS}, form="a dynamic_update_slice at a constant place for each range of rows")
def scatter_to_constant_slices(op: ScatterLowering) -> Sequence[Value]:
    """Lower constant windows whose rows are few runs of neighbours.

        %0 = stablehlo.dynamic_update_slice %rows, %updates[a:b], %constant

    Equal, because every row that the scatter writes is written with the update that it has in the end, in bounds, and
    no other; rows that are combined are combined once, since each is written once. A run whose updates come in opposite
    order is reversed. A run through several dims is cut into boxes, so that the operand keeps its shape: XLA copies a
    donated buffer that is reshaped around a write (2 elements of 64 MB: 146 ms, else 0.02). Both policies. Costs the
    updates; a buffer is written in place.
    """
    rows = FlatRows(op)
    current = op.scatter.promoted_operands(op.build)
    for piece in rows.solved.pieces or ():
        # Straight from the updates where they come in order: one slice, and no slice of a slice.
        taken, done = (rows.updates_of(piece), 0) if piece.is_reversed else (rows.updates, piece.source)
        for box in rows.boxes(piece):
            values = [rows.as_box(v, done, box) for v in taken]
            olds = [rows.in_box(c, box) for c in current] if reads_current(op) else values
            values = new_values(op, op.build, olds, values)
            current = [rows.write(c, v, box) for c, v in zip(current, values, strict=True)]
            done += box.rows
    return current


@lowers(strategy={Strategy.STRIDED}, form="select(mask, the updates padded in between, operand), the mask padded alike")
def scatter_to_strided_select(op: ScatterLowering) -> Sequence[Value]:
    """Lower constant windows whose rows are an even distance apart: `x.at[::2].set(y)`, a diagonal.

        %spread = stablehlo.pad %updates, low = first row, high = rows behind, interior = distance - 1
        %mask   = the same of a splat of true
        %r      = stablehlo.select %mask, %spread, %operand

    Equal: padding puts update k at first + k * distance, and true into the mask just there. Both policies; each
    row once. A pass over the operand, and nothing is looked up.
    """
    rows, build = FlatRows(op), op.build
    assert rows.solved.pieces is not None
    piece = rows.solved.pieces[0]
    behind = rows.solved.rows - (piece.target + (piece.size - 1) * piece.stride + 1)
    around = (piece.target, behind, piece.stride - 1)
    hit = rows.spread(build.constant(1, (piece.size,), "i1"), 0, *around)
    return rows.restore(rows.select_hit([rows.spread(v, rows.axis, *around) for v in rows.updates_of(piece)], hit))


@lowers(
    strategy={Strategy.MANY}, form="select(constant mask, gather of the updates through the constant inverse, operand)"
)
def scatter_to_constant_gather(op: ScatterLowering) -> Sequence[Value]:
    """Lower constant windows in any order through the inverse of their indices.

        %found = stablehlo.gather %updates, %inverse      row r: the update that row r has in the end
        %r     = stablehlo.select %mask, %found, %operand

    Equal: the inverse is a constant table with the last writer of each row, and 0 where there is none, where the mask
    is false. All entries are in bounds, so the gather clamps nothing. Both policies; duplicates are settled. A pass
    over the operand.
    """
    rows, build = FlatRows(op), op.build
    inverse = np.zeros(rows.solved.rows, np.int64)
    inverse[rows.solved.targets] = rows.solved.sources
    wide = "i32" if rows.solved.update_rows < 1 << 31 else "i64"
    table = build.constant_array(inverse.reshape(-1, 1), wide)
    mask = np.zeros(rows.solved.rows, np.bool_)
    mask[rows.solved.targets] = True
    found = [build.gather_rows(u, table, rows.axis) for u in rows.updates]
    return rows.restore(rows.select_hit(found, build.constant_array(mask, "i1")))


@dataclass(frozen=True)
class _Box:
    """A part of the dims that are flattened into rows: where it starts and how far it goes in each."""

    starts: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many rows it is."""
        return prod(self.extents)


class FlatRows:
    """The operands and updates of a scatter with the dims of its map flattened into one axis of rows.

    Attributes:
      solved: the map.
      axis: the dim of rows, the same in operands and updates.
      updates: flattened, in the region's types.
    """

    def __init__(self, op: ScatterLowering) -> None:
        assert op.facts.constant_map is not None
        self.solved: ConstantMap = op.facts.constant_map
        self._op, self._build = op, op.build
        scatter, dims = op.scatter, self.solved.dims
        rank = scatter.rank
        neighbours = dims == tuple(range(dims[0], dims[0] + len(dims)))
        self._order = list(range(rank)) if neighbours else [*dims, *(d for d in range(rank) if d not in dims)]
        self.axis = dims[0] if neighbours else 0
        self._shape = [scatter.operand_shape[d] for d in self._order]
        before, after = self._shape[: self.axis], self._shape[self.axis + len(dims) :]
        self._flat = (*before, self.solved.rows, *after)
        m = len(scatter.scatter_shape)
        order = [m + d for d in self._order]
        order = [*order[: self.axis], *range(m), *order[self.axis :]]
        shape = (*before, self.solved.update_rows, *after)
        self.updates = [
            op.build.reshape(op.build.transpose(u, order), shape) for u in scatter.canonical_updates(op.build)
        ]

    @cached_property
    def operands(self) -> list[Value]:
        """The operands, flattened, in the region's types."""
        return [self._flatten(v) for v in self._op.scatter.promoted_operands(self._build)]

    def _flatten(self, value: Value) -> Value:
        return self._build.reshape(self._build.transpose(value, self._order), self._flat)

    def restore(self, values: Sequence[Value]) -> list[Value]:
        """The results in the operand's shape."""
        inverse = [self._order.index(d) for d in range(len(self._order))]
        return [self._build.transpose(self._build.reshape(v, self._shape), inverse) for v in values]

    def boxes(self, piece: Piece) -> list["_Box"]:
        """A run of neighbouring rows in the operand's own dims, in the order of the rows."""
        shape = self._op.scatter.operand_shape
        return [_Box(s, e) for s, e in row_major_boxes(piece.target, piece.size, [shape[d] for d in self.solved.dims])]

    def _whole(self, box: "_Box") -> tuple[list[int], list[int]]:
        starts, limits = [0] * self._op.scatter.rank, list(self._op.scatter.operand_shape)
        for d, start, extent in zip(self.solved.dims, box.starts, box.extents, strict=True):
            starts[d], limits[d] = start, start + extent
        return starts, limits

    def as_box(self, value: Value, first: int, box: "_Box") -> Value:
        """A piece's rows of the updates, from `first` on, as a box in the operand's dims."""
        starts, limits = self._whole(box)
        sizes = [limits[d] - starts[d] for d in self._order]
        within = slice(self.axis, self.axis + len(self.solved.dims))
        if sum(extent > 1 for extent in sizes[within]) > 1:
            rows = self._build.reshape(slice_along(self._build, value, self.axis, first, box.rows), sizes)
        else:
            # The dims of 1 first, then the slice: IREE 3.13 dies of a slice of one element that a reshape gives more
            # dims, written into a splat.
            along = next((d for d in range(within.start, within.stop) if sizes[d] > 1), within.stop - 1)
            count = value.static_shape[self.axis]
            whole = [count if d == along else 1 if within.start <= d < within.stop else n for d, n in enumerate(sizes)]
            lows = [first if d == along else 0 for d in range(len(whole))]
            highs = [first + box.rows if d == along else n for d, n in enumerate(whole)]
            rows = self._build.slice(self._build.reshape(value, whole), lows, highs)
        return self._build.transpose(rows, [self._order.index(d) for d in range(len(self._order))])

    def in_box(self, operand: Value, box: "_Box") -> Value:
        """The operand's elements in a box."""
        return self._build.slice(operand, *self._whole(box))

    def write(self, operand: Value, value: Value, box: "_Box") -> Value:
        """The operand with a box written."""
        if operand.static_shape == value.static_shape:
            return value
        element = "i32" if all(size < 1 << 30 for size in operand.static_shape) else "i64"
        starts, _ = self._whole(box)
        return self._build.dynamic_update_slice(
            operand, value, [self._build.constant(start, (), element) for start in starts]
        )

    def updates_of(self, piece: Piece) -> list[Value]:
        """The rows of the updates that a piece writes, in the order in which they land."""
        rows = [slice_along(self._build, u, self.axis, piece.source, piece.size) for u in self.updates]
        return [self._build.reverse(r, [self.axis]) for r in rows] if piece.is_reversed else rows

    def spread(self, value: Value, axis: int, low: int, high: int, interior: int) -> Value:
        """A value with filling before, behind and in between along an axis."""

        def along(size: int) -> list[int]:
            return [size if d == axis else 0 for d in range(len(value.static_shape))]

        filling = self._build.zero_of(value)
        return self._build.pad(value, filling, along(low), along(high), along(interior))

    def select_hit(self, values: Sequence[Value], hit: Value) -> list[Value]:
        """The operands where no row lands, and the region of them and the values where hit, one i1 per row, is true."""
        build, shape = self._build, self.operands[0].static_shape
        proposed = new_values(self._op, build, self.operands if reads_current(self._op) else values, values)
        if len(self.solved.targets) == self.solved.rows:
            return proposed
        mask = build.broadcast(hit, shape, (self.axis,))
        return [build.select(mask, new, old) for new, old in zip(proposed, self.operands, strict=True)]


# --- writes with strides, for linalg ---
#
# Its `tensor.insert_slice` has strides, which StableHLO's slices for writing lack. Windows without strides need no form
# of their own there: jaxlib's pass makes `tensor.insert_slice` of `dynamic_update_slice` and `tensor.extract_slice` of
# `dynamic_slice`, both at the same clamped place, so the guards of the one-window rules hold as they stand, and a
# constant place folds into static offsets.


INSERT_SLICE = "hlo_lower.insert_slice"
"""The composite that stands for `tensor.insert_slice` until a module leaves in linalg."""


@rules.lowers(
    SCATTER,
    subset=MANY_WINDOWS,
    offsets={Offsets.CONSTANT},
    strategy={Strategy.STRIDED},
    dialect={Dialect.LINALG},
    form="tensor.insert_slice with a stride; of the body and the strided extract_slice if it combines",
)
def scatter_to_strided_insert_slice(op: ScatterLowering) -> Sequence[Value]:
    """Lower constant windows whose rows are an even distance apart where the module leaves in linalg.

        %r = stablehlo.composite "hlo_lower.insert_slice" %rows, %updates
               {offsets = [first, 0], strides = [distance, 1]}
        ->
        %r = tensor.insert_slice %updates into %rows[first, 0] [n, W] [distance, 1]

    Equal: both put update k at first + k * distance, each row once, all in bounds, and nothing else. Combined rows are
    read by the same slice before. Both policies: what is dropped was left out when the indices were solved. The
    composite's decomposition is the form of `scatter_to_strided_select`, so it can be run before it leaves. Costs the
    update; a buffer is written in place, where the decomposition passes over it.
    """
    rows, build = FlatRows(op), op.build
    assert rows.solved.pieces is not None
    piece = rows.solved.pieces[0]
    rank = len(rows.updates[0].static_shape)
    offsets, strides = [0] * rank, [1] * rank
    offsets[rows.axis], strides[rows.axis] = piece.target, piece.stride
    updates = rows.updates_of(piece)
    if reads_current(op):
        placed = zip(offsets, strides, updates[0].static_shape, strict=True)
        limits = [first + (count - 1) * step + 1 for first, step, count in placed]
        currents = [build.slice(v, offsets, limits, strides) for v in rows.operands]
    else:
        currents = updates
    values = new_values(op, build, currents, updates)
    pairs = zip(rows.operands, values, strict=True)
    return rows.restore([insert_slice(build, op.graph, operand, v, offsets, strides) for operand, v in pairs])


def insert_slice(
    build: Builder, graph: Graph, operand: Value, update: Value, offsets: Sequence[int], strides: Sequence[int]
) -> Value:
    """The operand with an update written at offsets + k * strides, as a composite; every place is in bounds."""
    place = f"{{offsets = {_numbers(offsets)}, strides = {_numbers(strides)}}}"
    attributes = {
        "name": mlir.parse_attribute(f'"{INSERT_SLICE}"'),
        "composite_attributes": mlir.parse_attribute(place),
        "decomposition": mlir.parse_attribute(f"@{_decomposition(graph, operand, update, offsets, strides)}"),
    }
    return build.op(COMPOSITE, [operand, update], [operand.raw.type], attributes).result()


def _numbers(values: Sequence[int]) -> str:
    return f"dense<[{', '.join(map(str, values))}]> : tensor<{len(values)}xi64>"


def read_place(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The offsets and the strides of such a composite."""
    place = node.raw.attributes["composite_attributes"]
    rank = len(node.operand(0).static_shape)
    read = (mlir.dense_value(place[name], (rank,), "i64") for name in ("offsets", "strides"))
    offsets, strides = (tuple(map(int, values)) for values in read if values is not None)
    return offsets, strides


def _decomposition(graph: Graph, operand: Value, update: Value, offsets: Sequence[int], strides: Sequence[int]) -> str:
    """The function that says what the composite does: the updates padded in between, selected where they are."""
    told = ("x".join(map(str, numbers)) for numbers in (offsets, strides))
    name = "_".join(("hlo_lower_insert_slice", *told, str(operand.raw.type), str(update.raw.type)))
    name = re.sub(r"\W+", "_", name).strip("_")
    if mlir.has_symbol(graph.module, name):
        return name
    types = [str(operand.raw.type), str(update.raw.type)]
    attributes = {
        "sym_name": mlir.parse_attribute(f'"{name}"'),
        "sym_visibility": mlir.parse_attribute('"private"'),
        "function_type": mlir.parse_attribute(f"({', '.join(types)}) -> {types[0]}"),
    }
    # A builder of its own: what it builds is no part of the lowering, it never reaches the target.
    location = mlir.unknown_location(graph.context)
    top = Builder(mlir.insert_at_end(graph.module.body), location)
    function = top.op("func.func", [], [], attributes, regions=1)
    block = Block(mlir.append_block(function.raw, 0, [operand.raw.type, update.raw.type], location))
    inner = top.at_end(block)
    target, source = block.arguments
    shape, sizes = target.static_shape, source.static_shape
    behind = [d - (o + (n - 1) * s + 1) for d, o, n, s in zip(shape, offsets, sizes, strides, strict=True)]
    between = [s - 1 for s in strides]
    spread = inner.pad(source, inner.zero_of(source), offsets, behind, between)
    everywhere = inner.constant(1, sizes, "i1")
    mask = inner.pad(everywhere, inner.constant(0, (), "i1"), offsets, behind, between)
    inner.op("func.return", [inner.select(mask, spread, target)], [])
    return name
