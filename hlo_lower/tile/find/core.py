"""Which values a loop is about: the large ones that belong together, and what lies between them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hlo_lower.facts.memory.dataflow import Dataflow
from hlo_lower.ir.view import Value
from hlo_lower.ops.axes.axis_link import Boundary

Fuse: TypeAlias = Literal["none", "producers", "all"]
FUSES: tuple[Fuse, ...] = ("none", "producers", "all")
"""What is computed in a loop with the value that it is made for."""

NOTHING = 1 << 62
"""More bytes than any value has: nothing is large."""


@dataclass(frozen=True)
class Core:
    """The values that a loop is about.

    Attributes:
      seed: the one that it is made for.
      least: bytes from which a value is large.
      cluster: the large values that are connected with the seed by sharing an op.
      values: these, and the small ones on paths between them.
    """

    seed: Value
    least: int
    cluster: frozenset[Value]
    values: frozenset[Value]


def core_of(program: Dataflow, seed: Value, least: int, fuse: Fuse = "all") -> Core:
    """The core around a seed.

    Args:
      program: the program.
      seed: the result of a node that has axes.
      least: bytes from which a value is large.
      fuse: what is computed in the loop with the seed: nothing, what it is computed from, or that and what is computed
        of it.
    """
    if fuse != "all":
        before = _ancestors(program, seed, least) if fuse == "producers" else set[Value]()
        return Core(seed, NOTHING, frozenset({seed}), frozenset(before | {seed}))
    cluster = _cluster(program, seed, least)
    arguments = set(program.block.arguments)
    behind: set[Value] = set()
    for node in program.nodes:
        if any(value in behind or value in cluster for value in program.taken[node]):
            behind.update(node.results)
    before: set[Value] = set()
    for node in reversed(program.nodes):
        if any(value in before or value in cluster for value in node.results):
            before.update(program.taken[node])
    return Core(seed, least, frozenset(cluster), frozenset((cluster | (behind & before)) - arguments))


def _ancestors(program: Dataflow, seed: Value, least: int) -> set[Value]:
    """The large values that a seed is computed from through large values alone."""
    found, pending = set[Value](), [seed]
    while pending:
        maker = program.maker.get(pending.pop())
        for value in maker.operands if maker else ():
            if value in program.maker and value not in found and program.size[value] >= least:
                found.add(value)
                pending.append(value)
    return found


def _cluster(program: Dataflow, seed: Value, least: int) -> set[Value]:
    found, pending = {seed}, [seed]
    while pending:
        value = pending.pop()
        maker = program.maker.get(value)
        for node in (*([maker] if maker else []), *program.users[value]):
            if node == program.terminator or isinstance(program.axes(node), Boundary):
                continue
            for other in (*node.operands, *node.results):
                if other not in found and program.size[other] >= least:
                    found.add(other)
                    pending.append(other)
    return found
