"""Ops that a target takes, but not in the form in which they stand."""

import numpy as np

from hlo_lower import mlir
from hlo_lower.graph import Builder, Graph, Node
from hlo_lower.lowerings import refused_form
from hlo_lower.lowerings.refused_form import FORM, FORM_DOMAINS, FormFacts
from hlo_lower.refused_forms import RefusedForm
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.sorting.float_keys import FLOAT_BITS
from hlo_lower.targets import Target

CONSTANT, COMPARE = "stablehlo.constant", "stablehlo.compare"
REDUCING = ("stablehlo.reduce", "stablehlo.reduce_window")
"""Ops that begin with a constant."""

AROUND = ("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case")
"""Ops whose regions hold ordinary ops; bodies of others are taken as they are."""


class RefusedFormKind(Kind):
    """Constants and comparisons in a form that the target refuses."""

    name = op = FORM
    ops = frozenset({CONSTANT, COMPARE})
    stage = Stage.TYPES
    domains = FORM_DOMAINS
    families = (refused_form.rules,)
    owned = frozenset({"value", "comparison_direction", "compare_type"})

    def concerns(self, target: Target) -> bool:
        return bool(target.refused_forms)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic.

        None of another form, within a body, and where reductions begin.
        """
        found = _form_of(node)
        if node.name == CONSTANT and all(user.name in REDUCING for user in node.result().users):
            return None
        parent = node.parent
        is_within = parent is not None and parent.name not in AROUND
        if found is None or is_within or found.value not in context.target.refused_forms:
            return None
        if not node.is_static:
            return Subject(self, node, node.name, (), nothing)
        return Subject(self, node, node.name, [Candidate(FormFacts(found))], as_it_stands(context, node))


def give_own_initial_values(graph: Graph) -> None:
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
        if made is None or made.name != CONSTANT or _form_of(made) is None:
            continue
        if any(user.name not in REDUCING for user in value.users):
            own = Builder.before(node).clone(made, [], [value.raw.type])
            node.raw.operands[number] = own.result().raw


def _form_of(node: Node) -> RefusedForm | None:
    value = node.operand(0) if node.operands else node.result()
    if not value.is_tensor or value.element_type not in FLOAT_BITS:
        return None
    if node.name == COMPARE:
        return RefusedForm.TOTAL_ORDER if "TOTALORDER" in str(node.attribute("compare_type")) else None
    numbers = node.constant()
    return RefusedForm.INFINITE if numbers is not None and bool(np.isinf(numbers).any()) else None
