"""Evidence: the chain of operations that a fact rests on; places are looked up only when somebody reads it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import WHILE


@dataclass(slots=True, eq=False)
class Evidence:
    """One step of a proof, on top of the steps that it builds on.

    Attributes:
      cause: what the step says ("clamped", from 0 to 63).
      location: where the operation that says so comes from, or None. The operation itself may be gone when it is read.
      parents: the steps below it.
    """

    cause: Cause
    location: mlir.RawLocation | None = None
    parents: tuple["Evidence", ...] = ()

    @classmethod
    def at(cls, node: Node, cause: Cause, parents: tuple["Evidence", ...] = ()) -> Self:
        """A step that a node makes."""
        return cls(cause, node.raw.location, parents)

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

    def placed_causes(self, graph: Graph, moved: Mapping[str, mlir.RawLocation] | None = None) -> tuple[Cause, ...]:
        """The steps as causes, each with its place.

        Args:
          graph: the module.
          moved: for the evidence of a twin (`hlo_lower.facts.values.value_numbering`): by its text, the location to
            take.
        """
        moved = moved or {}
        return tuple(
            s.cause
            if s.location is None
            else s.cause.with_place(str(graph.place(moved.get(str(s.location), s.location))))
            for s in self.steps()
        )


def plain_name(name: str) -> str:
    """An op's name as a reader knows it."""
    return name.removeprefix("stablehlo.")


def source_of(graph: Graph, argument: Value) -> Cause:
    """What a block's argument is, where it is not known: of a function, carried by a loop, or of a region."""
    block = argument.block
    assert block is not None
    owner = block.owner
    if owner.name == "func.func":
        return Code.ARGUMENT(argument.number, graph.function_of(owner).name, None)
    return (Code.CARRIED_BY if owner.name == WHILE else Code.ARGUMENT_OF)(plain_name(owner.name))


def merge(parts: tuple[Evidence | None, ...]) -> tuple[Evidence, ...]:
    """The evidence of several operands, without gaps and repetitions."""
    return tuple({id(part): part for part in parts if part is not None}.values())
