"""`chlo` operations: kept where the target takes them, else written out by jaxlib's pass."""

from hlo_lower import mlir
from hlo_lower.graph import Builder, Node
from hlo_lower.lowerings import chlo
from hlo_lower.lowerings.chlo import CHLO, CHLO_DOMAINS, ChloFacts, ChloLowering, Taken
from hlo_lower.lowerings.sharding import FRONTEND, GSPMD, SHARDY
from hlo_lower.registry import Facts
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.kind import Form, Subject
from hlo_lower.rewrite.kinds.composite import LegalizedKind

CARRIED = (SHARDY, GSPMD, FRONTEND)


class ChloKind(LegalizedKind):
    """`chlo` operations."""

    name = op = CHLO
    domains = CHLO_DOMAINS
    families = (chlo.rules,)

    def read(self, context: Context, node: Node) -> Subject:
        taken = Taken.WHOLE if node.name in context.target.composites else Taken.WRITTEN_OUT

        def given(told: Facts, build: Builder) -> ChloLowering:
            assert isinstance(told, ChloFacts)
            return ChloLowering(node, told, context.graph, build)

        return Subject(self, node, node.name, (Form(ChloFacts(taken, node.name)),), given)

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) - {*CARRIED}
