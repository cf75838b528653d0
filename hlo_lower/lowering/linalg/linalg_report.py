"""What a module in linalg still holds that a reader of linalg may not know."""

from collections import Counter
from dataclasses import dataclass

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.names import RETURN

PLAIN = frozenset({"affine", "arith", "builtin", "complex", "func", "linalg", "math", "scf", "tensor"})
"""The dialects that a linalg pipeline reads."""

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class LinalgReport:
    """How a module has left in linalg.

    Attributes:
      named: whether elementwise ops, reductions and transposes are named ops (else `linalg.generic`).
      left: the operations of other dialects that are still there, by name, each with how many; a custom call with
        its target.
      removed: attributes that were taken off because only StableHLO's readers know them, by name, each with how many.
      counted_loops: loops that became `scf.for`.
      other_loops: loops that became `scf.while`.
      signless: unsigned element types that became signless ones, as linalg has no others: "ui32".
      parallel_loops: loops that became `scf.forall`.
      in_order: where that was asked for and is not so, a place and why.
    """

    named: bool
    left: tuple[tuple[str, int], ...] = ()
    removed: tuple[tuple[str, int], ...] = ()
    counted_loops: int = 0
    other_loops: int = 0
    signless: tuple[str, ...] = ()
    parallel_loops: int = 0
    in_order: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether no operation of another dialect is left."""
        return not self.left

    def summary(self) -> str:
        """What is left, in a line."""
        form = "named ops" if self.named else "generic ops"
        return f"linalg in {form}, {'complete' if self.is_complete else f'left: {_told(self.left)}'}"

    def lines(self) -> tuple[str, ...]:
        """The whole report, a line for each thing that there is to tell."""
        told = [self.summary()]
        if self.counted_loops or self.other_loops or self.parallel_loops:
            parallel = f"{self.parallel_loops} scf.forall, " if self.parallel_loops else ""
            told.append(f"loops: {parallel}{self.counted_loops} scf.for, {self.other_loops} scf.while")
        told += [f"in order: {loop}" for loop in self.in_order]
        if self.removed:
            told.append(f"attributes removed: {_told(self.removed)}")
        if self.signless:
            told.append(f"signless now: {', '.join(self.signless)}")
        return tuple(told)


def _told(counts: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts)


def is_foreign(node: Node) -> bool:
    """Whether a node is of a dialect that a linalg pipeline does not read."""
    return node.name.split(".")[0] not in PLAIN or node.name == CAST


def left_in(graph: Graph) -> tuple[tuple[str, int], ...]:
    """The foreign operations of a module by name, the most frequent first; what ends a region belongs to its op."""
    counts: Counter[str] = Counter()

    def visit(node: Node) -> None:
        if is_foreign(node) and node.name != RETURN:
            counts[_name(node)] += 1

    graph.walk(visit)
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _name(node: Node) -> str:
    target = node.attribute("call_target_name")
    return node.name if target is None else f"{node.name} @{mlir.symbol_name(target)}"
