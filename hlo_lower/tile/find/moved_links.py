"""Links along a dim in which an op moves positions: slice, reverse, pad, concatenate, and a gather of rows.

Links of `ops/axes` know equal positions. Of these the operands' tiles are other positions than the result's, those that
a map of `tile/subsets.py` says. So a label goes through them one way, from the result to the operands.
"""

from dataclasses import dataclass, field
from itertools import accumulate
from math import prod

from hlo_lower.facts.memory.dataflow import Dataflow, size_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, OpAxes
from hlo_lower.ops.axes.op_axes import counted_dim
from hlo_lower.ops.axes.parts import INDEX, DimSubset, Filter, StridedRange, greatest_start
from hlo_lower.ops.names import CONCATENATE, GATHER, PAD, REVERSE, SCATTER, SLICE
from hlo_lower.tile.prepare.slice_hoisting import taken_dim
from hlo_lower.tile.subsets import Move, Moved, Picked, Run, tile

MOST_RUNS = 8
"""Pieces that follow each other along a dim, at most: each has a loop of its own."""

MORE_ROWS = 2
"""Rows are computed where they are gathered only if no more than so many times as many are gathered as there are."""


@dataclass(frozen=True)
class MovedLink(AxisLink):
    """The dims of an op along which it moves positions, and where those of its result come from."""

    move: Move = field(kw_only=True)


@dataclass(frozen=True)
class RowNumbers:
    """What a filter is by: the rows that a gather takes, clamped as it clamps them."""

    node: Node

    @property
    def indices(self) -> Value:
        """The index tensor."""
        return self.node.operand(1)

    def build(self, build: Builder, indices: Value) -> Value:
        """The rows, [n] of `INDEX`."""
        [dim] = mlir.gather_dimension_numbers(self.node.raw).start_index_map
        shape, element = indices.static_shape, indices.element_type
        last = greatest_start(indices, self.node.operand(0).static_shape[dim] - 1)
        low, high = (build.constant(bound, shape, element) for bound in (0, last))
        found = build.convert(build.clamp(low, indices, high), INDEX)
        return build.reshape(found, (prod(shape),))

    def __str__(self) -> str:
        node = self.indices.node
        return f"argument {self.indices.number}" if node is None else "rows"


@dataclass(frozen=True)
class UpdateNumbers:
    """What a filter is by: the updates of a scatter that go to a tile of its rows."""

    node: Node

    def __str__(self) -> str:
        return "updates"


LEAST_CHUNK = 64
"""Updates of a scatter that are computed together, at least: fewer are not faster."""


@dataclass(frozen=True)
class FilteredLink(AxisLink):
    """The dims of a scatter of rows along the dim that its indices count: those of its operand and its result are cut
    at equal positions, and of the updates those that go there are read (`emit/filtered_updates.py`)."""

    def needed(self, node: Node, number: int, part: StridedRange) -> DimSubset:
        """What rows of the result need of an operand: of the updates a chunk, a fourth more than go there if they
        are spread evenly: mostly one chunk for a tile, with little beyond its ends."""
        if number == 0:
            return part
        count, rows = node.operand(2).static_shape[self.operands[2] or 0], node.result().static_shape
        chunk = max(1, min(count, max(LEAST_CHUNK, 5 * count * part.size // (4 * rows[self.results[0] or 0]))))
        return Filter(UpdateNumbers(node), tile(0, chunk))


FEWER_ROWS = 16
"""Updates of a scatter are computed with the tile that they go to if they are at least this part of all of it."""


def filtered_link(program: Dataflow, node: Node, dim: int) -> FilteredLink | None:
    """The link of a scatter along a dim that its indices count, where each writes one row, which is computed here."""
    if len(node.results) != 1:
        return None
    numbers, operand, updates = mlir.ScatterNumbers.of(node.raw), node.operand(0), node.operand(2)
    is_row = numbers.scatter_dims_to_operand_dims == (dim,) == numbers.inserted_window_dims
    places = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
    if not is_row or numbers.input_batching_dims or len(places) != 1:
        return None
    rest = [n for d, n in enumerate(operand.shape) if d != dim]
    is_whole = rest == [updates.shape[d] for d in numbers.update_window_dims]
    is_made = updates in program.maker and updates not in program.cheap
    if not (is_whole and is_made and size_of(updates) * FEWER_ROWS >= size_of(operand)) or 0 in updates.shape:
        return None
    return FilteredLink((dim, None, places[0]), (dim,))


def moved_link(node: Node, dim: int) -> MovedLink | None:
    """The link of an op along a dim in which it moves positions; None where it does not, or not so."""
    if not all(value.is_static for value in (*node.operands, *node.results)):
        return None
    if node.name == GATHER:
        is_picked = taken_dim(node) == dim and size_of(node.result()) <= MORE_ROWS * size_of(node.operand(0))
        return MovedLink((dim, None), (dim,), move=Picked(RowNumbers(node))) if is_picked else None
    if node.name not in (CONCATENATE, PAD, REVERSE, SLICE):
        return None
    length = node.result().static_shape[dim]
    runs = [run for run in _runs(node, dim, length) if run.count > 0]
    if not length or len(runs) > MOST_RUNS:
        return None
    cut = (dim, None) if node.name == PAD else (dim,) * len(node.operands)
    return MovedLink(cut, (dim,), move=Moved(length, tuple(runs)))


def _runs(node: Node, dim: int, length: int) -> list[Run]:
    sizes = [value.static_shape[dim] for value in node.operands if len(value.shape) > dim]
    if node.name == CONCATENATE:
        is_along = node.integer("dimension") == dim
        places = [0, *accumulate(sizes)]
        return [Run(k, places[k], 0, size) for k, size in enumerate(sizes)] if is_along else []
    if node.name == REVERSE:
        return [Run(0, 0, length - 1, length, stride=-1)] if dim in node.integers("dimensions") else []
    if node.name == SLICE:
        return [Run(0, 0, node.integers("start_indices")[dim], length, stride=node.integers("strides")[dim])]
    low, between = (node.integers(name)[dim] for name in ("edge_padding_low", "interior_padding"))
    step = between + 1
    skipped = max(0, -(low // step)) if low < 0 else 0
    at = low + skipped * step
    count = min(sizes[0] - skipped, (length - 1 - at) // step + 1)
    return [Run(0, at, skipped, count, step)]


def link_at(program: Dataflow, node: Node, dim: int) -> AxisLink | None:
    """The link along which a dim of the results of a node is cut: of equal positions, or one that moves them."""
    axes = program.axes(node)
    if not isinstance(axes, OpAxes):
        return None
    known = axes.of_result(dim)
    if node.name == SCATTER and known is not None and counted_dim(node, known) is not None:
        return filtered_link(program, node, dim) or known
    if node.name == GATHER and known is not None and node.operand(0) in program.maker:
        return moved_link(node, dim) or known
    return known or moved_link(node, dim)


def moves(node: Node) -> bool:
    """Whether an op moves positions along one of its dims."""
    return node.name == SCATTER or any(moved_link(node, dim) is not None for dim in range(len(node.result().shape)))
