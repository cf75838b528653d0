"""Evidence: the chain of operations that a fact rests on, formatted only when somebody reads it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from hlo_lower import mlir
from hlo_lower.graph import Graph, Node


@dataclass(slots=True, eq=False)
class Evidence:
    """One step of a proof, on top of the steps that it builds on.

    Attributes:
      text: what the step says ("clamped to [0, 63]").
      location: where the operation that says so comes from, or None. The operation itself may be gone when it is read.
      parents: the steps below it.
    """

    text: str
    location: mlir.RawLocation | None = None
    parents: tuple["Evidence", ...] = ()

    @classmethod
    def at(cls, node: Node, text: str, parents: tuple["Evidence", ...] = ()) -> Self:
        """A step that a node makes."""
        return cls(text, node.raw.location, parents)

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

    def lines(self, graph: Graph, moved: Mapping[str, mlir.RawLocation] | None = None) -> tuple[str, ...]:
        """The steps as text, each with its place.

        Args:
          graph: the module.
          moved: for the evidence of a twin (`hlo_lower.analysis.twins`): by its text, which location to take instead.
        """
        moved = moved or {}
        return tuple(
            s.text if s.location is None else f"{s.text} at {graph.place(moved.get(str(s.location), s.location))}"
            for s in self.steps()
        )


def merge(parts: tuple[Evidence | None, ...]) -> tuple[Evidence, ...]:
    """The evidence of several operands, without gaps and repetitions."""
    return tuple({id(part): part for part in parts if part is not None}.values())
