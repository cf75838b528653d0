"""Evidence: the chain of operations that a fact rests on, formatted only when somebody reads it."""

from collections.abc import Iterator
from dataclasses import dataclass

from hlo_lower.graph import Graph, Node


@dataclass(frozen=True, slots=True)
class Evidence:
    """One step of a proof, on top of the steps that it builds on.

    Attributes:
      text: what the step says ("clamped to [0, 63]").
      node: the operation that says so, or None.
      parents: the steps below it.
    """

    text: str
    node: Node | None = None
    parents: tuple["Evidence", ...] = ()

    def steps(self) -> Iterator["Evidence"]:
        """All steps, causes before what follows from them, each once."""
        seen: set[int] = set()
        stack: list[tuple[Evidence, bool]] = [(self, False)]
        while stack:
            step, expanded = stack.pop()
            if expanded:
                yield step
            elif id(step) not in seen:
                seen.add(id(step))
                stack.append((step, True))
                stack.extend((parent, False) for parent in reversed(step.parents))

    def lines(self, graph: Graph) -> tuple[str, ...]:
        """The steps as text, each with its place."""
        return tuple(f"{s.text} at {graph.location(s.node)}" if s.node else s.text for s in self.steps())


def merge(parts: tuple[Evidence | None, ...]) -> tuple[Evidence, ...]:
    """The evidence of several operands, without gaps and repetitions."""
    kept: list[Evidence] = []
    for part in parts:
        if part is not None and part not in kept:
            kept.append(part)
    return tuple(kept)
