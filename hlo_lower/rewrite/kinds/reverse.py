"""`stablehlo.reverse`, for targets that refuse it, whole or on some element types."""

from hlo_lower.graph import Node
from hlo_lower.lowerings import reverse
from hlo_lower.lowerings.reverse import REVERSE, REVERSE_DOMAINS, Axes, reverse_facts
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.rewrite.legality import dtypes_on

MOST_SLICES = 1024
"""Beyond it a reverse is not taken apart, also where the target has no gather."""


class ReverseKind(Kind):
    """Reverses."""

    name = op = REVERSE
    stage = Stage.LOWERED
    domains = REVERSE_DOMAINS
    families = (reverse.rules,)
    owned = frozenset({"dimensions"})

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None where the target takes it."""
        if context.target.refusal(REVERSE, dtypes_on(node)) is None:
            return None
        if not node.operand(0).is_static:
            return Subject(self, node, REVERSE, (), nothing)
        facts = reverse_facts(node, few=context.target.costs.few_windows)
        candidates = [Candidate(facts)]
        if facts.axes is Axes.LONG and facts.slices <= MOST_SLICES:
            candidates.append(Candidate(facts.as_short()))

        return Subject(self, node, REVERSE, candidates, as_it_stands(context, node))
