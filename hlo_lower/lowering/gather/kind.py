"""`stablehlo.gather` of static shape, for targets that refuse it, on some element types or whole, or do not clamp."""

from dataclasses import replace

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.gather.canonical import read_gather
from hlo_lower.facts.gather.facts import GatherFacts, GatherStrategy, TakenGather, gather_facts
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, nothing
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.gather import gather
from hlo_lower.lowering.gather.gather import GatherLowering
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.quirks.forms_of_ops import refused_op_form, refuses_forms
from hlo_lower.ops.names import GATHER
from hlo_lower.ops.targets.target import Target


class GatherKind(Kind):
    """Gathers of static shape."""

    name = op = GATHER
    stage = Stage.LOWERED
    domains = GatherFacts.domains
    families = (gather.rules,)
    owned = frozenset({"dimension_numbers", "slice_sizes", "indices_are_sorted"})

    def concerns(self, options: Options) -> bool:
        return bool(options.target.gather) or refuses_forms(options.target) or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where it has no canonical one, None where it then needs none."""
        takes = taken_by(context.target, node)
        if not node.is_static:
            return None
        found = read_gather(node)
        if found is None:
            return None if takes is TakenGather.WHOLE else Subject(self, node, GATHER, (), nothing)
        facts = gather_facts(found, context.analysis, takes=takes, costs=context.target.costs_there)
        otherwise = replace(facts, taken=TakenGather.NOT)
        strategies = [Candidate(otherwise.with_strategy(strategy), own="strategy") for strategy in facts.strategies]
        if facts.taken is not TakenGather.NOT:
            strategies.insert(0, Candidate(facts))
        strategies.append(Candidate(otherwise.with_strategy(GatherStrategy.MANY)))

        return Subject(self, node, GATHER, strategies, lambda told, build: GatherLowering(found, told, build))

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        if not subject.candidates:
            return Code.NO_CANONICAL_GATHER()
        return super().left(context, subject, refused)


def taken_by(target: Target, node: Node) -> TakenGather:
    """How a target takes a gather."""
    if target.refusal(GATHER, dtypes_on(node)) is not None:
        return TakenGather.NOT
    if node.is_static and refused_op_form(target, node) is not None:
        return TakenGather.ORDERED
    return TakenGather.IN_BOUNDS if target.gather else TakenGather.WHOLE
