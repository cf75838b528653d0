"""`stablehlo.reverse`, for targets that refuse it, whole or on some element types."""

from dataclasses import replace

from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.quirks.forms_of_ops import refused_op_form, refuses_forms
from hlo_lower.lowering.single_ops import reverse
from hlo_lower.lowering.single_ops.reverse import Axes, ReverseFacts, reverse_facts
from hlo_lower.ops.names import REVERSE

MOST_SLICES = 1024
"""Beyond it a reverse is not taken apart, also where the target has no gather."""


class ReverseKind(Kind):
    """Reverses."""

    name = op = REVERSE
    stage = Stage.LOWERED
    domains = ReverseFacts.domains
    families = (reverse.rules,)
    owned = frozenset({"dimensions"})

    def concerns(self, options: Options) -> bool:
        return refuses_forms(options.target) or super().concerns(options)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None where the target takes it."""
        is_taken = context.target.refusal(REVERSE, dtypes_on(node)) is None
        if is_taken and refused_op_form(context.target, node) is None:
            return None
        if not node.operand(0).is_static:
            return Subject(self, node, REVERSE, (), nothing)
        facts = reverse_facts(node, few=context.target.costs.few_windows)
        candidates = [Candidate(replace(facts, axes=Axes.APART))] if is_taken else [Candidate(facts)]
        if facts.axes is Axes.LONG and facts.slices <= MOST_SLICES:
            candidates.append(Candidate(facts.as_short()))

        return Subject(self, node, REVERSE, candidates, as_it_stands(context, node))
