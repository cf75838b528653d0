"""Compute rows of what a scan stacks again where they are read, from what the scan carried into that trip.

    %xs, %fat = scan: each trip stacks the thin x that it begins with, and a fat f(x, w[k])
    backward loop: ... %row = dynamic_slice %fat, %i ...
    ->
    %xs = scan
    backward loop: ... %x = dynamic_slice %xs, %i; %w = dynamic_slice %ws, %i; %row = f(%x, %w) ...

Equal: row k of a stack is what trip k wrote (`hlo_lower.tile.find.scan_stacks`). That is computed by operations that
are functions of their operands from the counter, which is k; from values that the loop takes and leaves as they are;
from rows of other stacks, which stay; and from what it carried into trip k, which is stacked where nothing does so
yet. The same operations on the same operands of the same shapes: no sum is split.

What is computed again costs the time of the forward part once more for what is dropped: `jax.checkpoint` of the body,
made afterwards, and only as far as memory asks for it.
"""

from dataclasses import dataclass, field

from hlo_lower.facts.memory.dataflow import blocks_of, size_of, type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.regions import used_by
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.lowering.loops import read_counted
from hlo_lower.ops.cleanup import erase
from hlo_lower.ops.names import BROADCAST_IN_DIM, RESHAPE, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.tile.find.scan_stacks import (
    RowRead,
    Scan,
    ScanStack,
    ends,
    row_reads,
    scan_of,
    steps_of_counter,
    trips_of,
)
from hlo_lower.tile.prepare.loop_carries import change_carried, is_kept, put_in_order, sink_cheap
from hlo_lower.tile.prepare.normalize import repeat_cheap

LEAST = 1 << 16
"""Bytes from which a stack is worth the trouble."""


@dataclass(frozen=True)
class RecomputedRecord:
    """What of a scan is computed again."""

    where: str  # the place of the scan ("train.py:88")
    stacks: tuple[str, ...]  # the types of the stacks that are gone, the largest first
    added: tuple[str, ...]  # the types of those that are new
    trips: int  # rows of each
    ops: int  # how many operations compute a row of all of them again
    # saved, again: bytes of stacks that are gone, and of all that is computed again
    saved: int
    again: int

    def __str__(self) -> str:
        several = f"{len(self.stacks)} stacks, {self.stacks[0]} the largest" if self.stacks[1:] else self.stacks[0]
        new = f"; stacks {', '.join(self.added)}" if self.added else ""
        return f"{self.where}: rows of {several}, by {self.ops} ops for each of {self.trips} trips{new}"


@dataclass
class _Needs:
    """What rows of stacks are computed from."""

    nodes: dict[Node, None] = field(default_factory=dict[Node, None])  # of the scan's body
    rows: dict[Value, ScanStack] = field(default_factory=dict[Value, ScanStack])  # by value those of stacks that stay
    carried: dict[int, None] = field(default_factory=dict[int, None])  # positions of carried values that no stack has
    # by argument or value what the loop takes from around it
    around: dict[Value, Value] = field(default_factory=dict[Value, Value])


def levels(graph: Graph) -> list[int]:
    """Bytes of the stacks that could go, with the fattest alone, and so on to all."""
    with mlir.active(graph.context):
        found = [_droppable(graph, node) for node in _loops(graph)]
    count = max((len(_sizes(stacks)) for stacks in found), default=0)
    pairs = [(stacks, _sizes(stacks)) for stacks in found]
    return [
        sum(s.bytes for stacks, sizes in pairs for s in stacks if s.bytes in sizes[:n]) for n in range(1, count + 1)
    ]


def recompute(graph: Graph, level: int) -> tuple[RecomputedRecord, ...]:
    """Compute the stacks of the `level` largest sizes again where they are read, of every scan of a prepared module."""
    told: list[RecomputedRecord] = []
    with mlir.active(graph.context):
        for number in range(len(_loops(graph))):  # each time anew: those behind a changed one may be others now
            node = _loops(graph)[number]
            if not _droppable(graph, node):
                continue
            node = sink_cheap(node)
            for reader in _readers(_droppable(graph, node)):
                sink_cheap(reader)
            found = _droppable(graph, node)
            sizes = _sizes(found)[:level]
            told += _recompute(graph, node, {stack.place for stack in found if stack.bytes in sizes})
    repeat_cheap(graph)
    graph.forget()
    return tuple(told)


def _loops(graph: Graph) -> list[Node]:
    return [node for block in blocks_of(graph.main.body) for node in block.nodes if node.name == WHILE]


def _sizes(stacks: list[ScanStack]) -> list[int]:
    return sorted({stack.bytes for stack in stacks}, reverse=True)


def _droppable(graph: Graph, loop: Node) -> list[ScanStack]:
    """The stacks of a loop whose rows could be computed where they are read."""
    scan = scan_of(loop)
    if scan is None:
        return []
    found = [stack for stack in scan.stacks if stack.bytes >= LEAST and row_reads(stack)]
    return [stack for stack in found if _needs(graph, scan, [stack]) is not None]


def _needs(graph: Graph, scan: Scan, dropped: list[ScanStack]) -> _Needs | None:
    """What rows of these stacks are computed from; None where it is not known to be the same when it is done again."""
    body, is_function = scan.loop.blocks[1], Functional(graph)
    gone = {stack.place for stack in dropped}
    rows = {v: s for s in scan.stacks if s.place not in gone for v in (s.row, s.value)}
    stacked = {body.argument(stack.place) for stack in scan.stacks}
    needs, pending = _Needs(), [stack.value for stack in dropped]
    while pending:
        value = pending.pop()
        if value in rows:
            needs.rows[value] = rows[value]
        elif value.block == body:
            if value in stacked:
                return None
            if is_kept(scan.loop, value.number):
                needs.around[value] = scan.loop.operand(value.number)
            elif value.number != scan.counter:
                needs.carried[value.number] = None
        elif value.node is None or value.node.parent != scan.loop:
            needs.around[value] = value
        elif value.node not in needs.nodes:
            if not is_function(value.node):
                return None
            needs.nodes[value.node] = None
            pending += used_by(value.node)
    needs.nodes = {node: None for node in body.nodes if node in needs.nodes}
    return needs


def _recompute(graph: Graph, loop: Node, places: set[int]) -> list[RecomputedRecord]:
    """Drop the stacks at these positions; nothing where new ones would take as much."""
    first = scan_of(loop)
    assert first is not None
    histories = {s.value: s.place for s in first.stacks if s.value.block == loop.blocks[1]}
    dropped = [s for s in first.stacks if s.place in places and s.value not in histories]
    needs = _needs(graph, first, dropped)
    if needs is None or not dropped:
        return []
    types = [type_of(loop.result(s.place)) for s in sorted(dropped, key=lambda s: -s.bytes)]
    saved, where = sum(s.bytes for s in dropped), str(graph.location(loop))
    if saved <= sum(first.trips * size_of(loop.operand(place)) for place in needs.carried):
        return []
    count = len(loop.operands)
    loop = _with_histories(first, list(needs.carried))
    added = tuple(type_of(value) for value in loop.results[count:])
    scan = scan_of(loop)
    assert scan is not None
    gone = [s for s in scan.stacks if s.place in {s.place for s in dropped}]
    needs = _needs(graph, scan, gone)
    assert needs is not None
    assert not needs.carried
    again = scan.trips * sum(size_of(value) for node in needs.nodes for value in node.results)
    for reader in _readers(gone):
        _add_needed(reader, loop, needs)
    made: dict[tuple[Node | None, Value], dict[Value, Value]] = {}
    for stack in gone:
        for read in row_reads(stack) or ():
            known = made.setdefault((read.loop, read.start), {})
            _compute_row(read, stack, scan, needs, known)
    results = {loop.result(stack.place) for stack in gone}
    for user in {user for result in results for user in result.users}:
        taken = {number for number, value in enumerate(user.operands) if value in results}
        put_in_order(change_carried(user, taken, ()).blocks[1], Functional(graph))
    put_in_order(_drop(graph, loop, [stack.place for stack in gone]), Functional(graph))
    return [RecomputedRecord(where, tuple(types), added, scan.trips, len(needs.nodes), saved, again)]


def _with_histories(scan: Scan, carried: list[int]) -> Node:
    if not carried:
        return scan.loop
    build = Builder.before(scan.loop)
    initial = [scan.loop.operand(place) for place in carried]
    shapes = [(scan.trips, *value.static_shape) for value in initial]
    pairs = zip(initial, shapes, strict=True)
    empty = [build.broadcast(build.zero_of(v), shape) for v, shape in pairs]
    count = len(scan.loop.operands)
    loop = change_carried(scan.loop, (), empty)
    body = loop.blocks[1]
    inner = Builder.before(body.terminator)
    for number, (place, shape) in enumerate(zip(carried, shapes, strict=True), start=count):
        row = inner.reshape(body.argument(place), (1, *shape[1:]))
        new = inner.dynamic_update_slice(body.argument(number), row, _starts(inner, body.argument(scan.counter), shape))
        body.terminator.raw.operands[number] = new.raw
    return loop


def _starts(build: Builder, row: Value, shape: tuple[int, ...]) -> list[Value]:
    return [row, *(build.constant(0, (), row.element_type) for _ in shape[1:])]


def _readers(stacks: list[ScanStack]) -> list[Node]:
    reads = [read for stack in stacks for read in row_reads(stack) or ()]
    return list(dict.fromkeys(read.loop for read in reads if read.loop is not None))


def _add_needed(reader: Node, scan: Node, needs: _Needs) -> None:
    wanted = [*needs.around.values(), *(scan.result(stack.place) for stack in needs.rows.values())]
    new = [value for value in dict.fromkeys(wanted) if _taken_at(reader, value) is None]
    change_carried(reader, (), new)


def _taken_at(reader: Node, value: Value) -> int | None:
    """The position at which a loop takes a value and leaves it as it is."""
    return next((n for n, v in enumerate(reader.operands) if v == value and is_kept(reader, n)), None)


def _inside(read: RowRead, value: Value) -> Value:
    if read.loop is None:
        return value
    place = _taken_at(read.loop, value)
    assert place is not None
    return read.loop.blocks[1].argument(place)


def _compute_row(read: RowRead, stack: ScanStack, scan: Scan, needs: _Needs, known: dict[Value, Value]) -> None:
    """Replace a read by what computes the row; `known` has the scan's values of that row that are there already."""
    build = Builder.before(read.node)
    body = scan.loop.blocks[1]
    counter = body.argument(scan.counter)
    if not known:
        known[counter] = _trip(build, read, scan, counter.element_type)
        known.update((value, _inside(read, outer)) for value, outer in needs.around.items())
        for value, other in needs.rows.items():
            known[value] = _row_of(build, _inside(read, scan.loop.result(other.place)), known[counter], value)
    for node in _behind(stack.value, needs, known):
        copy = build.copy(node, known)
        known.update(zip(node.results, copy.results, strict=True))
    _replace_row(build, read.node, known[stack.value])


def _replace_row(build: Builder, row: Node, value: Value) -> None:
    """Use a value in the place of a row, and in that of a row without its leading dim."""
    for user in list(row.result().users):
        if user.name == RESHAPE and user.result().shape == value.shape:
            user.result().raw.replace_all_uses_with(value.raw)
            user.raw.erase()
    if row.result().is_used:
        row.result().raw.replace_all_uses_with(build.reshape(value, row.result().static_shape).raw)
    row.raw.erase()


def _behind(value: Value, needs: _Needs, known: dict[Value, Value]) -> list[Node]:
    """The nodes that a value is computed by and that are not there yet, in order."""
    found, pending = set[Node](), [value]
    while pending:
        current = pending.pop()
        if current not in known and current.node is not None and current.node not in found:
            found.add(current.node)
            pending += used_by(current.node)
    return [node for node in needs.nodes if node in found]


def _row_of(build: Builder, stack: Value, number: Value, value: Value) -> Value:
    """A row of a stack that stays, of the shape of a value of the scan."""
    shape = stack.static_shape
    row = build.dynamic_slice(stack, _starts(build, number, shape), (1, *shape[1:]))
    return build.reshape(row, value.static_shape)


def _trip(build: Builder, read: RowRead, scan: Scan, element: str) -> Value:
    """The trip that wrote the row that is read, in the type of the scan's counter: its start, clamped.

    A type that does not hold the last trip holds nothing beyond it, so its own greatest number does as the bound.
    """
    start = read.start
    if not _is_inside(read, scan.trips):
        most = int(start.element.most)
        last = build.constant(min(scan.trips - 1, most), (), start.element_type)
        start = build.clamp(build.constant(0, (), start.element_type), start, last)
    return build.convert(start, element)


def _is_inside(read: RowRead, trips: int) -> bool:
    counted = None if read.loop is None else read_counted(read.loop)
    if counted is None or read.loop is None:
        return False
    count = trips_of(read.loop, counted)
    if not count:
        return False
    line = steps_of_counter(read.start, read.loop.blocks[1].argument(counted.counter), count)
    return line is not None and all(0 <= end < trips for end in ends(line, count))


def _drop(graph: Graph, loop: Node, places: list[int]) -> Block:
    body = loop.blocks[1]
    updates = [body.terminator.operand(place).node for place in places]
    for place, update in zip(places, updates, strict=True):
        body.terminator.raw.operands[place] = body.argument(place).raw
        assert update is not None
        erase(graph, update)
    first = [value.node for value in (loop.operand(place) for place in places) if value.node is not None]
    block = Block(mlir.block_of(change_carried(loop, places, ()).raw))
    for node in dict.fromkeys(first):
        if node.name == BROADCAST_IN_DIM and not node.result().is_used:
            erase(graph, node)
    return block
