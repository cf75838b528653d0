"""`chlo.top_k`, and the composite of that name, written out as a sort for a target that refuses sorts.

The sort is lowered then. A top_k is looked at after scatters, whose indices it may be told to be distinct by. It is not
a kind of its own: its rules are those of its op.
"""

from collections.abc import Collection, Sequence

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Subject, as_it_stands
from hlo_lower.lowering.engine.legality import Refusal, refused_by_name
from hlo_lower.lowering.plain.chlo import ChloFacts, ChloKind, TakenChlo
from hlo_lower.lowering.plain.composite import CompositeKind, composite_facts
from hlo_lower.lowering.sort.kind import TOP_K, becomes_sort
from hlo_lower.ops.names import SORT
from hlo_lower.ops.targets.target import Target


class TopKCompositeKind(CompositeKind):
    """Composites of that name: calls of their decompositions.

    Attributes:
      called: the decompositions that are called then.
    """

    def __init__(self) -> None:
        self.called: set[str] = set()

    def read(self, context: Context, node: Node) -> Subject | None:
        """None where the target takes it, or sorts."""
        if mlir.symbol_name(node.raw.attributes["name"]) != TOP_K or not becomes_sort(context.target, node):
            return None
        self.called.add(node.body_name)
        facts = composite_facts(context.graph, node, whole=())
        return Subject(self, node, f'{self.op} "{TOP_K}"', (Candidate(facts),), as_it_stands(context, node))


class TopKKind(ChloKind):
    """Ops of that name."""

    op = TOP_K  # pyright: ignore[reportAssignmentType] (rules stand under "chlo.")

    def __init__(self, within: Collection[str] = ()) -> None:
        """Args: within: functions in which none is taken whole."""
        self._within = within

    def read(self, context: Context, node: Node) -> Subject | None:
        """None where the target takes it, or sorts."""
        is_within = context.graph.function_of(node).name in self._within
        if not is_within and not becomes_sort(context.target, node):
            return None
        facts = ChloFacts(TakenChlo.WRITTEN_OUT, TOP_K)
        return Subject(self, node, TOP_K, (Candidate(facts),), as_it_stands(context, node))

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """Sorts are what is lowered next."""
        within = {inner for node in built if node.name == SORT for inner in mlir.walked(node.raw)}
        return refused_by_name(target, graph, [node for node in built if node.raw not in within])
