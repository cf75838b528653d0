"""What the ops of a module are read with: how it is lowered, and what is known of all of it, found once."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.spread_dims import is_partitioned
from hlo_lower.facts.scatter.unreduced import unreduced_scatters
from hlo_lower.facts.values.value_numbering import ValueNumbering
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.preference import Preference
from hlo_lower.lowering.options import Options
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.targets.target import Target


@dataclass
class Context:
    """A module on its way to a target; for as long as its ops are read, none of them is changed.

    Attributes:
      graph: the module.
      options: how it is lowered.
      registry: the rules.
      read: what was read before, for twins.
      left: ops of control flow that stay, so that what stands in them is lowered alone.
      is_carried: whether ops have been computed on other element types, where theirs are refused and that does.
    """

    graph: Graph
    options: Options
    registry: CompositeLoweringRegistry
    read: dict[Hashable, object] = field(default_factory=dict[Hashable, object])
    left: set[Node] = field(default_factory=set[Node])
    is_carried: bool = False

    def afresh(self, graph: Graph | None = None, *, is_carried: bool | None = None) -> "Context":
        """The same, of which nothing is known yet: of a graph that was changed, or of another one."""
        carried = self.is_carried if is_carried is None else is_carried
        return Context(graph or self.graph, self.options, self.registry, is_carried=carried)

    @property
    def target(self) -> Target:
        """Who reads the module."""
        return self.options.target

    @cached_property
    def analysis(self) -> IndexAnalysis:
        """The ranges of the module's integers."""
        return IndexAnalysis(self.graph, loop_ranges=self.options.loop_ranges)

    @cached_property
    def numbering(self) -> ValueNumbering:
        """What is computed in the same way from the same values."""
        return ValueNumbering(self.graph)

    @cached_property
    def unreduced(self) -> Mapping[Node, str]:
        """The scatters that the module calls unreduced."""
        return unreduced_scatters(self.graph)

    @cached_property
    def is_partitioned(self) -> bool:
        """Whether the module is for several devices."""
        return is_partitioned(self.graph.module.operation)

    @cached_property
    def preference(self) -> Preference:
        """What the user prefers.

        Raises:
          InputError: there is no such rule or size.
        """
        return Preference.of(self.options.prefer, self.target.costs_there, self.registry.rules(SCATTER))

    @cached_property
    def numbers(self) -> Mapping[Node, int]:
        """The number of each scatter, in program order."""
        return {node: number for number, node in enumerate(self.graph.scatters, start=1)}

    def place(self, node: Node) -> str:
        """Where a node comes from, for a message."""
        location = self.graph.location(node)
        return f"{location.file}:{location.line}:{location.column}" if location.line else self.graph.name
