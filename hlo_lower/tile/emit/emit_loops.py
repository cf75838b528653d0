"""Emit the loops of a plan: what they compute leaves the block, and what reads it reads the loops' results."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.loops import TiledLoop
from hlo_lower.ops.axes.cut import THREADED
from hlo_lower.ops.axes.op_axes import clamped_starts, combiner_of
from hlo_lower.ops.names import CONSTANT, DYNAMIC_SLICE, REDUCE, WHILE
from hlo_lower.ops.spec import RESHAPING
from hlo_lower.tile.emit.filtered_updates import SortedUpdates
from hlo_lower.tile.emit.loop_body import LoopBody
from hlo_lower.tile.emit.phases import Loop, LoopPlan
from hlo_lower.tile.find.labels import reads_tile
from hlo_lower.tile.find.moved_links import (
    FilteredLink,
    MovedLink,
    RowNumbers,
    StartNumbers,
    WindowNumbers,
    WrittenLink,
)
from hlo_lower.tile.prepare.loop_carries import put_in_order
from hlo_lower.tile.subsets import Picked


@dataclass(frozen=True)
class Sizes:
    """How a plan's loops are built."""

    steps: int  # steps of a tile
    most: int  # bytes beyond which what a tile gives to an accumulator is itself computed tile by tile
    is_unrolled: bool = False  # whether each tile is built by itself, in the place of a `stablehlo.while`


def emit(program: Dataflow, plan: LoopPlan, sizes: Sizes, seeds: list[Node] | None = None) -> list[Node]:
    """Build the loops of a plan in the place of its nodes, which ends the program; those that are a
    `stablehlo.while`. `seeds` gets the nodes that compute the seed's tiles."""
    whole: dict[Value, Value] = {}
    made: list[Node] = [] if seeds is None else seeds
    inside = {node for loop in plan.loops for node in loop.nodes}
    leaves = [node in inside for node in program.nodes]  # asked now: a node whose operands change is another key
    with mlir.active(program.graph.context):
        built = {node for loop in plan.loops for node in _emit(program, plan, loop, sizes, whole, made)}
        _replace(program, leaves, whole)
        put_in_order(program.block, program.is_function)
    program.graph.forget()
    return [node for node in program.block.nodes if node in built and node.name == WHILE]


def _emit(
    program: Dataflow, plan: LoopPlan, loop: Loop, sizes: Sizes, whole: dict[Value, Value], seeds: list[Node]
) -> list[Node]:
    """Build one loop, and give its nodes; `whole` has what earlier loops gave, and gets what this one gives."""
    location = program.maker[plan.labels.core.seed].raw.location
    build = Builder(mlir.insert_before(program.terminator.raw), location)
    given = _values_read(program, plan, loop)
    carried = [build.zeros_like(value) for value in loop.tiles]
    for node in loop.accumulators:
        carried += _initial(build, plan, node, whole)
    for value in (*given, *carried):
        _clamp_slice(value, plan)
    around = [whole.get(value, value) for value in given]
    filters = _filters(build, plan, loop, whole)
    around += filters.values()
    body = LoopBody(program, plan.labels, loop, [*given, *filters], sizes.most)
    results = carried
    for low, high in plan.labels.ranges:
        results = _emit_segment(build, body, sizes, results, around, low, high)
    seeds += body.seeds
    leaving = [*loop.tiles, *(value for node in loop.accumulators for value in node.results)]
    whole.update(zip(leaving, results, strict=True))
    return build.built


def _emit_segment(
    build: Builder, body: LoopBody, sizes: Sizes, carried: list[Value], around: list[Value], low: int, high: int
) -> list[Value]:
    """Build the tiles of some of the steps: those of a grain each in a loop, and what is left over behind it."""
    grain = body.labels.grain
    count, left = divmod(high - low, grain)
    if count:
        tail = "smaller" if body.loop.accumulators else "clamped"
        tiled = TiledLoop(count, min(max(1, sizes.steps // grain), count), tail, sizes.is_unrolled)
        carried = tiled.emit(build, carried, around, body.from_step(low))
    if left:
        carried = list(body.build(build, 0, body.steps(high - left, left), carried, around))
    return carried


def _filters(build: Builder, plan: LoopPlan, loop: Loop, whole: dict[Value, Value]) -> dict[Hashable, Value]:
    """The filters by which nodes of a loop read, built before it."""
    found: dict[Hashable, Value] = {}
    for node in loop.nodes:
        link = plan.labels.axes[node]
        rows = link.move.index if isinstance(link, MovedLink) and isinstance(link.move, Picked) else None
        if isinstance(link, WrittenLink):
            rows = StartNumbers(node, link.results[0] or 0)
            found[node, "written"] = rows.written_mask(build, whole.get(rows.start, rows.start))
        if isinstance(rows, StartNumbers):
            found[rows] = rows.build(build, whole.get(rows.start, rows.start))
        elif isinstance(rows, RowNumbers | WindowNumbers):
            found[rows] = rows.build(build, whole.get(rows.indices, rows.indices))
        elif isinstance(link, FilteredLink):
            indices = node.operand(len(node.results))
            updates = SortedUpdates.of(build, node, link, whole.get(indices, indices))
            found |= {(node, name): value for name, value in vars(updates).items() if value is not None}
    return found


def _values_read(program: Dataflow, plan: LoopPlan, loop: Loop) -> list[Value]:
    read = [value for value, _ in read_around(program, plan, loop)]
    found: dict[Value, None] = {}
    for value in read:  # grows
        maker = program.maker.get(value)
        if maker is not None and is_made_inside(program, plan, value):
            read += maker.operands
        else:
            found[value] = None
    return list(found)


def _clamp_slice(value: Value, plan: LoopPlan) -> None:
    """Clamp the starts of a slice that a loop reads: XLA adds those of a slice that a tile makes of it (see
    `dynamic_slice_piece`), and clamps neither."""
    node = value.node
    while node is not None and node.name in RESHAPING:
        node = node.operand(0).node
    is_slice = node is not None and node.name == DYNAMIC_SLICE and node.operand(0).is_static
    if node is None or not is_slice or node in plan.labels.axes:  # pieces of it are clamped
        return
    for number, start in enumerate(clamped_starts(Builder.before(node), node.operands, node.integers("slice_sizes"))):
        node.raw.operands[number + 1] = start.raw


def read_around(program: Dataflow, plan: LoopPlan, loop: Loop) -> Iterator[tuple[Value, int | None]]:
    """Each read of a value from around a loop, and the dim along which a tile takes a part of it; None: all of it."""
    inside = set(loop.nodes)
    for node in loop.nodes:
        axis = plan.labels.axes[node]
        carried = len(node.results) if axis.combine == THREADED else 0
        for number, value in enumerate(node.operands):
            is_tile = program.maker.get(value) in inside and reads_tile(plan.labels, node, number)
            index = axis.move.index if isinstance(axis, MovedLink) and isinstance(axis.move, Picked) else None
            is_rows = isinstance(index, RowNumbers) and number == 1
            is_sorted = isinstance(axis, FilteredLink) and not isinstance(axis, WrittenLink)
            is_by = is_rows or (is_sorted and number == len(node.results))
            if number >= carried and not is_tile and not is_by:
                yield value, axis.operands[number]


def is_made_inside(program: Dataflow, plan: LoopPlan, value: Value) -> bool:
    """Whether a value that a loop reads as a whole is made in its body: a constant of one value, what is asked for, and
    what is large and costs nothing, of which a loop within the body may take a part: a mask of all scores.

    It is not where it reads what stays within another loop.
    """
    core, maker = plan.labels.core, program.maker.get(value)
    is_free = program.size[value] >= core.least and value in program.cheap
    is_made = is_free or value in core.inside or is_splat(maker)
    operands = list(maker.operands) if maker is not None and is_made else list[Value]()
    return is_made and all(v not in plan.within or is_made_inside(program, plan, v) for v in operands)


def is_splat(node: Node | None) -> bool:
    """Whether a node is a constant of one value."""
    return node is not None and node.name == CONSTANT and mlir.is_splat(node.raw)


def _initial(build: Builder, plan: LoopPlan, node: Node, whole: dict[Value, Value]) -> list[Value]:
    """What an accumulator begins with: what a scatter writes into, or what its combiner leaves alone."""
    axis = plan.labels.axes[node]
    if axis.combine == THREADED:
        return [whole.get(value, value) for value in node.operands[: len(node.results)]]
    if node.name == REDUCE and combiner_of(node) is not None:
        value = whole.get(node.operand(1), node.operand(1))
        return [build.broadcast(value, node.result().static_shape)]
    return [build.zeros_like(node.result())]


def _replace(program: Dataflow, leaves: list[bool], whole: dict[Value, Value]) -> None:
    """Have what stays read the loops' results, and erase what leaves (a flag for each of `program.nodes`) and what
    nothing reads any more: `program.nodes` are the rest."""
    for old, new in whole.items():
        old.raw.replace_all_uses_with(new.raw)
    left = list[Node]()
    for node, is_inside in zip(reversed(program.nodes), reversed(leaves), strict=True):
        is_pure = node.name in program.rules.by_axes and program.is_function(node)
        is_used = any(value.is_used for value in node.results)
        if is_inside or (is_pure and not is_used):
            assert not is_used, f"a loop computes it, and it is read around the loop: {node.raw}"
            node.raw.erase()
        else:
            left.append(node)
    program.nodes = left[::-1]
