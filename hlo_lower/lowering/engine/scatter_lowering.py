"""What a lowering is given, and what it returns."""

from dataclasses import dataclass

from hlo_lower.facts.scatter.arrange import Arrangement
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.facts import ScatterFacts
from hlo_lower.facts.scatter.flat import FlatScatter, flatten
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph


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
