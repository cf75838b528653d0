"""Count several dims by one number, where a reshape beside a gather or scatter of points merges them.

    gather(reshape %x : RxW -> AxBxW, (i, j))              ->  gather(%x, B * clamp(i) + clamp(j))
    reshape(scatter(%z : AxBxW, (i, j), %u)) : RxW         ->  scatter(reshape %z : RxW, B * i + j, %u)
    scatter(%z, %i : NxMx2, reshape %u : PxW -> NxMxW)     ->  scatter(%z, reshape %i : Px2, %u)

Equal: in row-major order element (i, j) of AxB is element B * i + j of R = A * B. A gather clamps each component, so
that the number is inside. A scatter drops what is out of bounds along one of them: its number is R, which is dropped,
too. Updates are gone through in row-major order of their positions, merged or not.

With the reshape gone, a loop over what reads or makes the rows computes single rows, and where no dim of AxBxW has as
many steps as R, smaller tiles.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from hlo_lower.facts.memory.dataflow import blocks_of
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import reduce_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.axes.parts import INDEX, greatest_start
from hlo_lower.ops.cleanup import erase
from hlo_lower.ops.names import BROADCAST_IN_DIM, GATHER, RESHAPE, SCATTER
from hlo_lower.tile.prepare.batched_rows import dimension_attributes, dims_of

MOST = 1 << 31
"""Positions that `INDEX` counts."""


def merge_points(graph: Graph, *, keeps_results: bool = False) -> None:
    """Do so for all scatters and gathers of the entry point and of its loops.

    Args:
      graph: the module.
      keeps_results: whether results of scatters keep their shapes, whose dims are named by hand.
    """
    with mlir.active(graph.context):
        nodes = [node for block in blocks_of(graph.main.body) for node in block.nodes]
        for node in [node for node in nodes if node.name in (SCATTER, GATHER) and node.is_static]:
            if node.name == GATHER:
                _merge_gathered(graph, node)
            elif len(node.results) == 1:
                merged = _merge_positions(graph, node)
                if not keeps_results:
                    _merge_scattered(graph, merged)
    graph.forget()


def _counted_group(node: Node) -> range | None:
    """The dims that the index vectors of a gather or scatter of points count, where they follow each other."""
    numbers = _numbers_of(node)
    gone, _, mapped = dims_of(numbers)
    shape, found = node.operand(0).static_shape, sorted(mapped)
    group = range(found[0], found[0] + len(found)) if found else range(0)
    is_point = len(group) > 1 and found == list(group) and set(found) <= set(gone)
    return group if is_point and 0 < prod(shape[d] for d in group) < MOST else None


def _numbers_of(node: Node) -> mlir.ScatterNumbers | mlir.GatherNumbers:
    is_scatter = node.name == SCATTER
    return mlir.ScatterNumbers.of(node.raw) if is_scatter else mlir.gather_dimension_numbers(node.raw)


def _merged_shape(shape: Sequence[int], group: range) -> tuple[int, ...]:
    """A shape with a group of dims as one."""
    return (*shape[: group.start], prod(shape[d] for d in group), *shape[group.stop :])


def _merged_dims(node: Node, group: range) -> dict[str, mlir.RawAttribute]:
    """The dimension numbers of a gather or scatter of which a group of dims is counted as one."""
    numbers = _numbers_of(node)
    gone, batching, _ = dims_of(numbers)
    moved = {d: d if d < group.start else d - len(group) + 1 for d in range(len(node.operand(0).shape))}
    left = sorted({*(moved[d] for d in gone if d not in group), group.start})
    pairs = [(moved[d], index) for d, index in batching]
    return dimension_attributes(numbers, left, pairs, [group.start])


def _reshape_source(value: Value, shape: Sequence[int]) -> Value | None:
    """What a value of a shape is reshaped to another one from."""
    maker = value.node
    is_reshaped = maker is not None and maker.name == RESHAPE and maker.operand(0).shape == tuple(shape)
    return maker.operand(0) if maker is not None and is_reshaped else None


def _merge_gathered(graph: Graph, node: Node) -> None:
    """Gather rows of what the operand is reshaped from."""
    group, operand = _counted_group(node), node.operand(0)
    rows = None if group is None else _reshape_source(operand, _merged_shape(operand.static_shape, group))
    if group is None or rows is None:
        return
    build, sizes = Builder.before(node), node.integers("slice_sizes")
    indices = _count(build, node, node.operand(1), group)
    told = {"slice_sizes": mlir.dense_i64(_merged_shape(sizes, group))}
    new = build.copy_on(node, [rows, indices], [node.result().raw.type], {**_merged_dims(node, group), **told})
    mlir.replace_results(node.raw, new.raw.results)
    erase(graph, node)


def _merge_scattered(graph: Graph, node: Node) -> None:
    """Scatter into rows, where the operand is reshaped from them or the result to them."""
    group, operand = _counted_group(node), node.operand(0)
    if group is None:
        return
    shape = _merged_shape(operand.static_shape, group)
    rows, users = _reshape_source(operand, shape), [use for use in node.result().users if use.name == RESHAPE]
    merging = [user for user in users if user.result().shape == shape]
    if rows is None and not merging:
        return
    build = Builder.before(node)
    into = rows or _reshape(build, operand, shape)
    indices = _count(build, node, node.operand(1), group)
    new = build.copy_on(node, [into, indices, node.operand(2)], [into.raw.type], _merged_dims(node, group)).result()
    for user in merging:
        mlir.replace_results(user.raw, [new.raw])
        erase(graph, user)
    if node.result().is_used:
        mlir.replace_results(node.raw, [build.reshape(new, operand.static_shape).raw])
    erase(graph, node)


def _reshape(build: Builder, value: Value, shape: Sequence[int]) -> Value:
    """A value in another shape; of one number everywhere it is made in it, which costs nothing."""
    maker = value.node
    if maker is not None and maker.name == BROADCAST_IN_DIM and not maker.operand(0).shape:
        return build.broadcast(maker.operand(0), shape)
    return build.reshape(value, shape)


def _count(build: Builder, node: Node, indices: Value, group: range) -> Value:
    """The numbers of points in a group of dims, as an index tensor of one component, of `INDEX`."""
    numbers, extents = _numbers_of(node), node.operand(0).static_shape
    _, _, mapped = dims_of(numbers)
    shape, vector = list(indices.static_shape), numbers.index_vector_dim
    along = [len(mapped) if d == vector else 1 for d in range(len(shape))]
    last = np.array([greatest_start(indices, extents[d] - 1) for d in mapped]).reshape(along)
    high = build.constant_array(np.broadcast_to(last, shape), indices.element_type)
    clamped = build.clamp(build.constant(0, shape, indices.element_type), indices, high)
    weights = np.array([prod(extents[d + 1 : group.stop]) for d in mapped]).reshape(along)
    each = build.constant_array(np.broadcast_to(weights, shape), INDEX)
    found = build.multiply(build.convert(clamped, INDEX), each)
    counted = reduce_along(build, found, build.constant(0, (), INDEX), vector, "add")
    if node.name == SCATTER:
        inside = build.compare(clamped, "EQ", indices)
        is_there = reduce_along(build, inside, build.constant(1, (), "i1"), vector, "and")
        beyond = build.constant(prod(extents[d] for d in group), counted.static_shape, INDEX)
        counted = build.select(is_there, counted, beyond)
    return build.reshape(counted, [1 if d == vector else n for d, n in enumerate(shape)])


def _merge_positions(graph: Graph, node: Node) -> Node:
    """Scatter what the updates are reshaped from, where the reshape splits the dim of their positions."""
    numbers, (operand, indices, updates) = mlir.ScatterNumbers.of(node.raw), node.operands
    counted = [d for d in range(len(indices.shape)) if d != numbers.index_vector_dim]
    places = [d for d in range(len(updates.shape)) if d not in numbers.update_window_dims]
    free = [(p, i) for p, i in zip(places, counted, strict=True) if i not in numbers.scatter_indices_batching_dims]
    group, mine = (range(pair[0], pair[0] + len(free)) for pair in zip(*free, strict=True)) if free else (range(0),) * 2
    if len(free) < 2 or free != list(zip(group, mine, strict=True)):
        return node
    rows = _reshape_source(updates, _merged_shape(updates.static_shape, group))
    if rows is None:
        return node
    build, less = Builder.before(node), len(free) - 1

    def moved(dims: Sequence[int], gone: range) -> tuple[int, ...]:
        return tuple(d if d < gone.start else d - less for d in dims)

    told = replace(
        numbers,
        update_window_dims=moved(numbers.update_window_dims, group),
        index_vector_dim=moved([numbers.index_vector_dim], mine)[0],
    )
    gone, _, mapped = dims_of(numbers)
    pairs = list(zip(numbers.input_batching_dims, moved(numbers.scatter_indices_batching_dims, mine), strict=True))
    merged = build.reshape(indices, _merged_shape(indices.static_shape, mine))
    attributes = dimension_attributes(told, gone, pairs, mapped)
    new = build.copy_on(node, [operand, merged, rows], [node.result().raw.type], attributes)
    mlir.replace_results(node.raw, new.raw.results)
    erase(graph, node)
    return new
