"""Ops of static shape that a target refuses, whole or on some element types, each lowered by a rule of its own."""

from hlo_lower.analysis import Site
from hlo_lower.graph import Node
from hlo_lower.lowerings import reduce_window, remainder
from hlo_lower.lowerings.plain_op import PLAIN, PLAIN_DOMAINS, Elements, Numbers, PlainFacts, PlainOp, elements_of
from hlo_lower.rewrite.context import Context
from hlo_lower.rewrite.decision import Refused
from hlo_lower.rewrite.kind import Candidate, Kind, Stage, Subject, as_it_stands, nothing
from hlo_lower.rewrite.legality import dtypes_on


class PlainOpKind(Kind):
    """Ops for which there is a table of rules."""

    name = op = PLAIN
    ops = frozenset(op.value for op in PlainOp)
    stage = Stage.LOWERED
    domains = PLAIN_DOMAINS
    families = (remainder.rules, reduce_window.rules)

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its shape is dynamic, None where the target takes it."""
        if context.target.refusal(node.name, dtypes_on(node)) is None:
            return None
        if not all(value.is_static for value in (*node.operands, *node.results)):
            return Subject(self, node, node.name, (), nothing)
        return Subject(self, node, node.name, [Candidate(_facts(context, node))], as_it_stands(context, node))

    def owns(self, node: Node) -> frozenset[str]:
        return OWNED

    def left(self, context: Context, subject: Subject, refused: Refused) -> str:
        if not subject.candidates:
            return "of dynamic shape: --bind gives the sizes"
        return super().left(context, subject, refused)


OWNED = frozenset(
    ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding", "dimensions")
    + ("exponent_bits", "mantissa_bits", "epsilon", "feature_index", "result_accuracy")
    + ("dimension_numbers", "indices_are_sorted")
)
"""Attributes that make an op what it is."""


def _facts(context: Context, node: Node) -> PlainFacts:
    named = PlainOp(node.name)
    return PlainFacts(
        named,
        elements_of(node.operand(0).element_type),
        Numbers.BOUNDED if context.options.float_mode == "reassociate" else Numbers.EXACT,
        is_safe_divisor=named is PlainOp.REMAINDER and _is_safe_divisor(context, node),
        window=reduce_window.window_elements(node) if named is PlainOp.REDUCE_WINDOW else 0,
    )


def _is_safe_divisor(context: Context, node: Node) -> bool:
    """Whether no divisor of an integer division is 0, or -1."""
    divisor = node.operand(1)
    if elements_of(divisor.element_type) not in (Elements.SIGNED, Elements.UNSIGNED):
        return False
    low, high = context.analysis.of(Site(divisor)).hull()
    return low > 0 or high < -1
