"""`stablehlo.gather` of static shape, for targets that refuse it, on some element types or whole, or do not clamp."""

from dataclasses import replace

from hlo_lower.gather import GATHER_DOMAINS, GatherForm, Taken, gather_facts, read_gather
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Node
from hlo_lower.lowerings import gather
from hlo_lower.lowerings.gather import GatherLowering
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.decision import Refused
from hlo_lower.rewrite.kind import Form, Kind, Stage, Subject, nothing
from hlo_lower.rewrite.legality import dtypes_on
from hlo_lower.targets import Target


class GatherKind(Kind):
    """Gathers of static shape."""

    name = op = GATHER
    stage = Stage.LOWERED
    domains = GATHER_DOMAINS
    families = (gather.rules,)
    owned = frozenset({"dimension_numbers", "slice_sizes", "indices_are_sorted"})

    def concerns(self, target: Target) -> bool:
        return bool(target.gather) or super().concerns(target)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where it has no canonical one, None where it then needs none."""
        takes = taken_by(context.target, node)
        if not is_static(node):
            return None
        found = read_gather(node)
        if found is None:
            return None if takes is Taken.WHOLE else Subject(self, node, GATHER, (), nothing)
        facts = gather_facts(found, context.analysis, takes=takes, sizes=context.target.sizes)
        otherwise = replace(facts, taken=Taken.NOT)
        forms = [Form(otherwise.in_form(form), own="size") for form in facts.forms]
        if facts.taken is not Taken.NOT:
            forms.insert(0, Form(facts))
        forms.append(Form(otherwise.in_form(GatherForm.MANY)))

        return Subject(self, node, GATHER, forms, lambda told, build: GatherLowering(found, told, build))

    def left(self, context: Context, subject: Subject, refused: Refused) -> str:
        if not subject.forms:
            return "its element type, or an empty window, is not lowered"
        return super().left(context, subject, refused)


def taken_by(target: Target, node: Node) -> Taken:
    """How a target takes a gather."""
    if target.refusal(GATHER, dtypes_on(node)) is not None:
        return Taken.NOT
    return Taken.IN_BOUNDS if target.gather else Taken.WHOLE


def is_static(node: Node) -> bool:
    """Whether all sizes of a node's operands and results are known."""
    return all(value.is_static for value in (*node.operands, *node.results))
