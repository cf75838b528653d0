"""`chlo` operations: kept where the target takes them, else written out by jaxlib's pass."""

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Subject, as_it_stands
from hlo_lower.lowering.engine.sharding import FRONTEND, GSPMD, SHARDY
from hlo_lower.lowering.plain import chlo
from hlo_lower.lowering.plain.chlo import CHLO, ChloFacts, TakenChlo
from hlo_lower.lowering.plain.composite_kind import LegalizedKind
from hlo_lower.lowering.sort.kind import TOP_K, becomes_sort

CARRIED = (SHARDY, GSPMD, FRONTEND)


class ChloKind(LegalizedKind):
    """`chlo` operations."""

    name = op = CHLO
    domains = ChloFacts.domains
    families = (chlo.rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; None where it is looked at after scatters, as a sort."""
        if node.name == TOP_K and becomes_sort(context.target, node):
            return None
        taken = TakenChlo.WHOLE if node.name in context.target.composites else TakenChlo.WRITTEN_OUT

        return Subject(self, node, node.name, (Candidate(ChloFacts(taken, node.name)),), as_it_stands(context, node))

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) - {*CARRIED}
