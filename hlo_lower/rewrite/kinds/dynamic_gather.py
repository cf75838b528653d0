"""`stablehlo.gather` of a shape that is known at run time only."""

from hlo_lower.causes import Cause, Code
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Node
from hlo_lower.lowerings import dynamic_gather
from hlo_lower.lowerings.dynamic_gather import (
    DYNAMIC_GATHER,
    DynamicGatherFacts,
)
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.decision import Refused
from hlo_lower.rewrite.kind import Candidate, Subject, as_it_stands
from hlo_lower.rewrite.kinds.gather import GatherKind, taken_by


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
