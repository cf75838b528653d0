"""Ops that a target takes, but not in the form in which they stand."""

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.quirks import refused_form
from hlo_lower.lowering.quirks.form_of import BELOW_ZERO, REDUCING, form_of, is_start_alone
from hlo_lower.lowering.quirks.refused_form import FORM, FormFacts
from hlo_lower.ops.names import CASE, COMPARE, CONSTANT, IF, WHILE
from hlo_lower.ops.targets.refused_forms import RefusedForm

AROUND = ("func.func", WHILE, IF, CASE)
"""Ops whose regions hold ordinary ops; bodies of others are taken as they are."""


class RefusedFormKind(Kind):
    """Constants, comparisons and functions in a form that the target refuses."""

    name = op = FORM
    ops = frozenset({CONSTANT, COMPARE, *BELOW_ZERO})
    stage = Stage.TYPES
    domains = FormFacts.domains
    families = (refused_form.rules,)
    owned = frozenset({"value", "comparison_direction", "compare_type", "result_accuracy"})

    def concerns(self, options: Options) -> bool:
        return bool(options.target.refused_forms)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic and constants of it are needed.

        None of another form, where reductions begin, and of a constant or comparison within a body.
        """
        found = form_of(node)
        if is_start_alone(node):
            return None
        parent = node.parent
        is_within = parent is not None and parent.name not in AROUND and node.name not in BELOW_ZERO
        if found is None or is_within or found.value not in context.target.refused_forms:
            return None
        if not node.is_static and found is not RefusedForm.ODD_BELOW_ZERO:
            return Subject(self, node, node.name, (), nothing)
        return Subject(self, node, node.name, [Candidate(FormFacts(found))], as_it_stands(context, node))


def give_own_starts(graph: Graph) -> None:
    """Give reductions that begin with an infinite constant one of their own, where other ops use it, too.

    A consumer knows a maximum by the constant that it begins with, and writes no number of it down; so such a constant
    is left as it is.
    """
    with mlir.active(graph.context):
        for raw in mlir.walked(graph.module.operation):
            if raw.name in REDUCING:
                _give_own(Node(raw))
    graph.forget()


def _give_own(node: Node) -> None:
    for number, value in enumerate(node.operands):
        made = value.node
        if made is None or made.name != CONSTANT or form_of(made) is None:
            continue
        if any(user.name not in REDUCING for user in value.users):
            own = Builder.before(node).clone(made, [], [value.raw.type])
            node.raw.operands[number] = own.result().raw
