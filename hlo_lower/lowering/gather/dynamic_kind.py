"""`stablehlo.gather` of a shape that is known at run time only."""

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Subject, as_it_stands
from hlo_lower.lowering.gather import dynamic_gather
from hlo_lower.lowering.gather.dynamic_gather import DYNAMIC_GATHER, DynamicGatherFacts
from hlo_lower.lowering.gather.kind import GatherKind, taken_by
from hlo_lower.ops.names import GATHER


class DynamicGatherKind(GatherKind):
    """Gathers of dynamic shape."""

    name = DYNAMIC_GATHER
    domains = DynamicGatherFacts.domains
    families = (dynamic_gather.rules,)

    def read(self, context: Context, node: Node) -> Subject | None:
        if node.is_static:
            return None
        candidates = (Candidate(DynamicGatherFacts(taken_by(context.target, node))),)
        return Subject(self, node, GATHER, candidates, as_it_stands(context, node))

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        return Code.ONLY_CLAMPED()
