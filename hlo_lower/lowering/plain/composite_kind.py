"""`stablehlo.composite`: kept whole, written out, or made a call of its decomposition."""

from collections.abc import Sequence

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.registry import Rule
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Chosen, Decision, Kept, Refused
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, values_of
from hlo_lower.lowering.engine.legality import Refusal, refused_by_name
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.plain import composite
from hlo_lower.lowering.plain.composite import CompositeFacts, composite_facts
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.target import Target


class LegalizedKind(Kind):
    """What portable input has besides StableHLO; what it becomes is looked at again by whatever comes after."""

    stage = Stage.LEGALIZED

    def concerns(self, options: Options) -> bool:
        return True

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        return refused_by_name(target, graph, built)

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        where = str(context.graph.location(subject.node))
        match decision:
            case Chosen():
                return Change(Outcome.LEGALIZED, subject.label, self.became(decision), where)
            case Kept(why=why):
                return Change(Outcome.KEPT, subject.label, why, where)
            case Refused():
                return Change(Outcome.LEFT, subject.label, self.left(context, subject, decision), where)

    def became(self, chosen: Chosen) -> Cause:
        """What an op became."""
        return Code.BECAME(chosen.choice.rule.form, "", None)

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        if not refused.nearest:
            return super().left(context, subject, refused)
        return Code.LACKS("", refused.nearest[0][1])


class CompositeKind(LegalizedKind):
    """Composites."""

    name = op = COMPOSITE
    domains = CompositeFacts.domains
    families = (composite.rules,)
    owned = frozenset({"name", "composite_attributes", "decomposition", "version"})

    def read(self, context: Context, node: Node) -> Subject | None:
        facts = composite_facts(context.graph, node, whole=context.target.composites)

        return Subject(self, node, f'{COMPOSITE} "{facts.full_name}"', (Candidate(facts),), as_it_stands(context, node))

    def became(self, chosen: Chosen) -> Cause:
        assert isinstance(chosen.facts, CompositeFacts)
        return Code.BECAME(chosen.choice.rule.form, chosen.choice.rule.name, chosen.facts.claim)

    def title(self, rule: Rule) -> str:
        return ", ".join(["composite", *map(values_of, rule.constraints.values())])
