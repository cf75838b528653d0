"""Which subsets of each value a tile of a loop needs, asked from what leaves the loop, and where the loop is cut.

A tile of what leaves a loop needs a subset of each operand, that one of its own operands, and so on. Where a value is
needed as two subsets, both are computed. So that each tile lies in one piece of a concatenate, or in the padding or
within, the steps are cut into segments, each with a loop of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.axes.cut import AxisLink, OpAxes, Steps, subset_rules
from hlo_lower.ops.axes.op_axes import takes_runs
from hlo_lower.ops.axes.parts import DimSubset, Filter, TensorSubset, is_run
from hlo_lower.tile.find.moved_links import FilteredLink, MovedLink, UpdateNumbers
from hlo_lower.tile.subsets import Moved

ITERATOR = "i"

MOST_SEGMENTS = 12
"""Segments of a loop, at most."""

MOST_SUBSETS = 4
"""Subsets of one value that a tile computes, at most."""

MOST_GRAIN = 16
"""Most steps that a tile is a multiple of."""

Demands = dict[Value, dict[DimSubset, None]]


class UnmetError(Exception):
    """A node cannot give a subset of its results, or says not which one of its operands it needs."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self.node = node


def needed_subset(node: Node, axis: AxisLink, number: int, part: DimSubset | None, steps: Steps) -> DimSubset | None:
    """The subset of an operand's dim that a subset of the result's dim needs; None if it needs nothing.

    Args:
      node, axis: a node and the axis along which it is cut.
      number: of an operand of which a dim is cut.
      part: of the result; None of what is combined from the tiles.
      steps: those of the tile.

    Raises:
      UnmetError: it is not one subset.
    """
    dim = axis.operands[number]
    assert dim is not None
    length = node.operand(number).static_shape[dim]
    if part is None:
        return steps.run(length)
    if isinstance(axis, MovedLink):
        try:
            image = axis.move.image(part)
        except ValueError:
            raise UnmetError(node) from None
        return _of_operand(node, number, image.part) if image.operand == number else None
    if isinstance(axis, FilteredLink):
        if not is_run(part):
            raise UnmetError(node)
        return axis.needed_subset(node, number, part)
    mine = result_length(node, axis)
    if mine == length:
        return _of_operand(node, number, part)
    if mine % steps.count or part != steps.run(mine):
        raise UnmetError(node)
    return steps.run(length)


def _of_operand(node: Node, number: int, part: DimSubset) -> DimSubset:
    """A part of a result's dim as that of an operand's: where each position of a batch has a list of its own, the
    operand has the dims of the batch, too, and as many positions along them.

    Raises:
      UnmetError: it does not, or has them in another order.
    """
    if not isinstance(part, Filter) or not part.batch:
        return part
    axes = subset_rules.of(node)
    assert isinstance(axes, OpAxes)
    links = [axes.of_result(dim) for dim in part.batch]
    dims = [None if link is None else link.operands[number] for link in links]
    batch = tuple(dim for dim in dims if dim is not None)
    operand, result = node.operand(number).shape, node.result().shape
    is_alike = [operand[dim] for dim in batch] == [result[dim] for dim in part.batch]
    if not is_alike or list(batch) != sorted(batch):
        raise UnmetError(node)
    return replace(part, batch=batch)


def filtered_by(part: DimSubset | None) -> UpdateNumbers | None:
    """The scatter whose updates a subset is of, if it is: it is computed in the loop over chunks of them."""
    while isinstance(part, Filter):
        if isinstance(part.index, UpdateNumbers):
            return part.index
        part = part.part
    return None


def result_length(node: Node, axis: AxisLink) -> int:
    """The length of the dim of the results along which a node is cut."""
    dim = axis.results[0]
    assert dim is not None
    return node.result().static_shape[dim]


def parts_of(found: Demands, node: Node, axis: AxisLink) -> Sequence[DimSubset | None]:
    """The subsets of a node's results that are needed; [None] of what is combined from the tiles."""
    if axis.combine:
        return [None]
    return list(dict.fromkeys(part for value in node.results for part in found.get(value, ())))


def demands(
    axes: dict[Node, AxisLink], dims: dict[Value, int], nodes: Sequence[Node], tiles: Iterable[Value], steps: Steps
) -> Demands:
    """The subsets that a tile needs of each value that it computes.

    Args:
      axes, dims: the axis of each node, and the dim of each value that is cut.
      nodes: those of the loop, in order.
      tiles: what leaves it tile by tile.
      steps: those of the tile.

    Raises:
      UnmetError: a node cannot give what is needed.
    """
    found: Demands = {value: {steps.run(value.static_shape[dims[value]]): None} for value in tiles}
    for node in reversed(nodes):
        axis = axes[node]
        for part in parts_of(found, node, axis):
            if part is not None and not is_run(part) and takes_runs(node, axis):
                raise UnmetError(node)
            for number, value in enumerate(node.operands):
                if axis.operands[number] is None:
                    continue
                read = needed_subset(node, axis, number, part, steps)
                if read is not None and dims.get(value) == axis.operands[number]:
                    found.setdefault(value, {})[read] = None
    return found


def first_parts(
    axes: dict[Node, AxisLink],
    dims: dict[Value, int],
    nodes: Sequence[Node],
    tiles: Sequence[Value],
    steps: Sequence[Steps],
) -> dict[tuple[Value, int], DimSubset]:
    """The first subset that tiles, one of each segment, need of a dim of each value, computed or read."""
    found: dict[tuple[Value, int], DimSubset] = {}
    for tile in steps:
        wanted = demands(axes, dims, nodes, tiles, tile)
        for node in reversed(nodes):
            axis = axes[node]
            for part in parts_of(wanted, node, axis):
                for number, dim in enumerate(axis.operands):
                    read = None if dim is None else needed_subset(node, axis, number, part, tile)
                    if dim is not None and read is not None:
                        found.setdefault((node.operand(number), dim), read)
        for value, parts in wanted.items():
            found.setdefault((value, dims[value]), next(iter(parts)))
    return found


def part_taken(found: dict[tuple[Value, int], DimSubset], value: Value, dim: int | None, steps: Steps) -> TensorSubset:
    """The part of a value that was found to be taken along a dim, all of it for None."""
    shape = value.static_shape
    taken = None if dim is None else found.get((value, dim))
    return steps.part(shape, dim) if dim is None or taken is None else TensorSubset.full(shape).along(dim, taken)


def segments(
    axes: dict[Node, AxisLink], dims: dict[Value, int], nodes: Sequence[Node], tiles: Sequence[Value], count: int
) -> tuple[list[tuple[int, int]], int]:
    """The segments into which the steps are cut, each from one step to another, and of how many steps tiles are
    multiples; see `demands`."""
    moved = [(node, axis.move) for node, axis in axes.items() if isinstance(axis, MovedLink)]
    if not moved and not any(isinstance(axis, FilteredLink) for axis in axes.values()):
        return [(0, count)], 1
    spacings = [(node, max((run.spacing for run in m.runs), default=1)) for node, m in moved if isinstance(m, Moved)]
    grain = prod(spacing for _, spacing in spacings)
    if grain > MOST_GRAIN:
        raise UnmetError(max(spacings, key=lambda pair: pair[1])[0])
    found: list[tuple[int, int]] = []
    pending = [(0, count)]
    while pending:
        low, high = pending.pop()
        cut = _first_cut(axes, dims, nodes, tiles, Steps(ITERATOR, count, high - low, low, grain))
        if cut is None:
            found.append((low, high))
        else:
            pending += [(low + cut[1], high), (low, low + cut[1])]
            if len(found) + len(pending) > MOST_SEGMENTS:
                raise UnmetError(cut[0])
    return sorted(found), grain


def _first_cut(
    axes: dict[Node, AxisLink], dims: dict[Value, int], nodes: Sequence[Node], tiles: Sequence[Value], steps: Steps
) -> tuple[Node, int] | None:
    """The node, the last in order, of which a segment needs more than one stretch, and at which step it is cut."""
    place = {node: k for k, node in enumerate(nodes)}
    for number in sorted((place[node] for node, axis in axes.items() if isinstance(axis, MovedLink)), reverse=True):
        node = nodes[number]
        axis = axes[node]
        assert isinstance(axis, MovedLink)
        found = demands(axes, dims, nodes[number + 1 :], [v for v in tiles if v in dims], steps)
        for part in found.get(node.result(), ()):
            try:
                cut = axis.move.cut(part)
            except ValueError:
                raise UnmetError(node) from None
            if cut is None:
                continue
            unit, left = divmod(part.size, steps.size)
            if left or not unit or cut % unit:
                raise UnmetError(node)
            return node, cut // unit
    found = demands(axes, dims, nodes, tiles, steps)
    worst = next((value for value, parts in found.items() if len(parts) > MOST_SUBSETS), None)
    if worst is not None and worst.node is not None:
        raise UnmetError(worst.node)
    return None
