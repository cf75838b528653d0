"""What a rule is given: an op, its facts and a builder; and of a scatter its canonical form."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from hlo_lower.facts.scatter.arrange import Arrangement
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.facts import ScatterFacts
from hlo_lower.facts.scatter.flat import FlatScatter, flatten
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


@dataclass(frozen=True)
class ScatterLowering:
    """One scatter to be lowered. A rule takes it and returns the values that replace the scatter's results.

    Attributes:
      scatter: the scatter in canonical form.
      facts: what is known of it.
      graph: the module, for the functions that the region calls.
      build: builds in front of the scatter.
    """

    scatter: CanonicalScatter
    facts: ScatterFacts
    graph: Graph
    build: Builder

    @property
    def arrangement(self) -> Arrangement:
        """The scatter under its layout."""
        return Arrangement(self.scatter, self.facts.layout)

    @property
    def flat(self) -> FlatScatter:
        """The scatter by rows."""
        facts = self.facts
        return flatten(self.scatter, facts.layout, (*facts.guarded_dims, *facts.masked_dims), facts.oob)
