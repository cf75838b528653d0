"""Custom calls: those that encode an operation become it."""

from collections.abc import Sequence
from dataclasses import replace

from hlo_lower.base.causes import Cause
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Subject, as_it_stands
from hlo_lower.lowering.engine.legality import Refusal
from hlo_lower.lowering.matrices.matrix_call import is_lapack
from hlo_lower.lowering.plain import custom_call
from hlo_lower.lowering.plain.chlo import TakenChlo
from hlo_lower.lowering.plain.chlo_kind import CARRIED
from hlo_lower.lowering.plain.composite_kind import LegalizedKind
from hlo_lower.lowering.plain.custom_call import KNOWN, NOTES, TOP_K, CustomCallFacts, Meaning, custom_call_facts
from hlo_lower.lowering.sort.kind import becomes_sort
from hlo_lower.ops.names import CUSTOM_CALL
from hlo_lower.ops.targets.target import Target


class CustomCallKind(LegalizedKind):
    """Custom calls, but those that only say where a tensor is to live, and those to LAPACK (`linear_algebra`)."""

    name = op = CUSTOM_CALL
    domains = CustomCallFacts.domains
    families = (custom_call.rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        name = mlir.call_target(node.raw)
        if name in NOTES or is_lapack(name):
            return None
        facts = custom_call_facts(node, whole=context.target.composites)
        if name == TOP_K and facts.meaning is Meaning.KNOWN and becomes_sort(context.target, node):
            facts = replace(facts, taken=TakenChlo.WHOLE)  # as chlo.top_k, it is a sort after the scatters

        return Subject(self, node, f"{CUSTOM_CALL} @{name}", (Candidate(facts),), as_it_stands(context, node))

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """The `chlo` operation that it is, is taken whole or looked at next."""
        return super().refusal(target, graph, [node for node in built if node.name not in KNOWN.values()])

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset(mlir.attributes_of(node.raw)) - {*CARRIED}

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        facts = subject.candidates[0].facts
        assert isinstance(facts, CustomCallFacts)
        return facts.why or super().left(context, subject, refused)
