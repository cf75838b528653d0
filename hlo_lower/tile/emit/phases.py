"""Cut labelled nodes into loops: what each loop computes, yields and accumulates, and what a later loop computes again.

A node reads an operand as a tile where both carry the same label, else as a part of the whole value, which is there
only when the loop that makes it has ended. So nodes fall into phases, and each phase is a loop. Of what an earlier loop
computed a later one reads the small values, and computes the large and the cheap ones again from these.
"""

from dataclasses import dataclass, field
from functools import cached_property

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Node, Value
from hlo_lower.tile.find.labels import Labels, reads_only_tiles, reads_tile


@dataclass
class Loop:
    """What a loop computes."""

    nodes: list[Node] = field(default_factory=list[Node])  # those in it, in program order
    # labelled values that leave it, as results that are written tile by tile
    tiles: list[Value] = field(default_factory=list[Value])
    # nodes whose result is combined from what the tiles give
    accumulators: list[Node] = field(default_factory=list[Node])
    again: list[Node] = field(default_factory=list[Node])  # those of its nodes that an earlier loop has, too


@dataclass(frozen=True)
class LoopPlan:
    """The loops that labels ask for, in order."""

    labels: Labels  # what is cut where
    loops: tuple[Loop, ...]  # in order; between them stands what needs the whole of what one gives

    @cached_property
    def within(self) -> set[Value]:
        """What loops compute and none of them gives."""
        given = {value for loop in self.loops for value in loop.tiles}
        combined = {node for loop in self.loops for node in loop.accumulators}
        nodes = {node for loop in self.loops for node in loop.nodes} - combined
        return {value for node in nodes for value in node.results} - given


def cut(program: Dataflow, labels: Labels) -> LoopPlan:
    """Cut labelled nodes into loops."""
    phase = _phases(program, labels)
    count = max(phase.values(), default=-1) + 1
    loops = [Loop() for _ in range(count)]
    leaves = [_leaving(program, labels, phase, number) for number in range(count)]
    for number in reversed(range(count)):
        loop = loops[number]
        inside = [node for node in program.nodes if phase.get(node) == number]
        loop.accumulators = [node for node in inside if labels.axes[node].combine]
        roots = [program.maker[value] for value in leaves[number]] + loop.accumulators
        needed, read = _closure(program, labels, phase, roots, number)
        for value in read:
            leaves[phase[program.maker[value]]].setdefault(value)
        loop.nodes = [node for node in program.nodes if node in needed]
        loop.again = [node for node in loop.nodes if phase[node] < number]
    for loop, leaving in zip(loops, leaves, strict=True):
        loop.tiles = [value for node in loop.nodes for value in node.results if value in leaving]
    return LoopPlan(labels, tuple(loop for loop in loops if loop.nodes))


def _phases(program: Dataflow, labels: Labels) -> dict[Node, int]:
    phase: dict[Node, int] = {}
    ready = dict.fromkeys(program.block.arguments, 0)  # for each value the first loop that can read all of it
    effects: dict[Node, int] = {}
    for node in program.nodes:
        if node in labels.axes:
            found = 0
            for number, value in enumerate(node.operands):
                maker = program.maker.get(value)
                is_tile = reads_tile(labels, node, number) and maker in phase
                found = max(found, phase[maker] if is_tile and maker is not None else ready.get(value, 0))
            phase[node] = found
            ready.update(dict.fromkeys(node.results, found + 1))
            continue
        first = max((ready.get(value, 0) for value in program.used_values[node]), default=0)
        before = program.effect_before.get(node)
        effects[node] = max(first, effects.get(before, 0) if before is not None else 0)
        ready.update(dict.fromkeys(node.results, effects[node]))
    return phase


def _leaving(program: Dataflow, labels: Labels, phase: dict[Node, int], number: int) -> dict[Value, None]:
    """The labelled values of a phase that something reads as a whole, or outside of every loop."""
    found: dict[Value, None] = {}
    for value in labels.dims:
        maker = program.maker[value]
        if phase.get(maker) == number and any(
            not reads_only_tiles(labels, user, value) for user in program.users[value]
        ):
            found[value] = None
    return found


def _closure(
    program: Dataflow, labels: Labels, phase: dict[Node, int], roots: list[Node], number: int
) -> tuple[set[Node], set[Value]]:
    """The nodes that a loop needs for its roots, and the small values that it reads of earlier loops."""
    needed: set[Node] = set()
    read: set[Value] = set()
    pending = list(roots)
    while pending:
        node = pending.pop()
        if node in needed:
            continue
        needed.add(node)
        for place, value in enumerate(node.operands):
            maker = program.maker.get(value)
            if maker is None or not reads_tile(labels, node, place):
                continue
            is_large = program.size[value] >= labels.core.least or value in labels.moved
            if phase[maker] < number and not is_large and value not in program.cheap:
                read.add(value)
            else:
                pending.append(maker)
    return needed, read
