"""What a rule is given of an op that has no canonical form of its own."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node

F = TypeVar("F")


@dataclass(frozen=True)
class OpLowering(Generic[F]):
    """One op to be lowered. A rule takes it and returns the values that replace the op's results.

    Attributes:
      node: the op.
      facts: what is known of it.
      graph: the module.
      build: builds in front of the op.
    """

    node: Node
    facts: F
    graph: Graph
    build: Builder
