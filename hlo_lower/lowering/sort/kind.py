"""`stablehlo.sort`, for targets that refuse it, whole or on some element types."""

from collections.abc import Iterable

from hlo_lower.base.causes import Cause
from hlo_lower.base.element_types import WIDE_FLOATS, element_type
from hlo_lower.facts.sort.canonical_sort import read_sort
from hlo_lower.facts.sort.sort_facts import SortFacts, sort_strategies
from hlo_lower.ir.view import Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.decision import Refused
from hlo_lower.lowering.engine.kind import Candidate, Kind, Stage, Subject, nothing
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.sort import sort, sort_network, sort_ranks, sort_rounds
from hlo_lower.lowering.sort.sort import SortLowering
from hlo_lower.ops.names import BITCAST_CONVERT, GATHER, SLICE, SORT, XOR
from hlo_lower.ops.targets.target import Target

TOP_K = "chlo.top_k"


class SortKind(Kind):
    """Sorts."""

    name = op = SORT
    stage = Stage.SORTED
    domains = SortFacts.domains
    families = (sort.rules, sort_ranks.rules, sort_rounds.rules, sort_network.rules)
    owned = frozenset({"dimension", "is_stable"})

    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of it; without any form where its comparator is not read, None where the target takes it."""
        target = context.target
        if target.refusal(SORT, dtypes_on(node)) is None:
            return None
        found = read_sort(node)
        if isinstance(found, Cause):
            return Subject(self, node, SORT, (), nothing)
        in_bits = takes_bits(target, (key.value.element_type for key in found.keys))
        facts = sort_strategies(found, target.costs, _gathered(target, node), in_bits=in_bits)
        readers = () if found.readers == (node,) else found.readers

        return Subject(
            kind=self,
            node=node,
            label=SORT,
            candidates=[Candidate(one) for one in facts],
            given=lambda told, build: SortLowering(found, told, build),
            readers=readers,
        )

    def owns(self, node: Node) -> frozenset[str]:
        return frozenset({"start_indices", "limit_indices", "strides"}) if node.name == SLICE else self.owned

    def left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        found = read_sort(subject.node)
        return found if isinstance(found, Cause) else super().left(context, subject, refused)


def _gathered(target: Target, node: Node) -> frozenset[int]:
    """The operands whose rows the target gathers by positions of i32."""
    types = enumerate(operand.element_type for operand in node.operands)
    return frozenset(k for k, element in types if target.refusal(GATHER, {element, "i32"}) is None)


def takes_bits(target: Target, elements: Iterable[str]) -> bool:
    """Whether a target takes what compares the floats among some element types as integers."""
    widths = {element: element_type(element).signed for element in elements if element in WIDE_FLOATS}
    return all(
        target.refusal(BITCAST_CONVERT, {element, bits}) is None and target.refusal(XOR, {bits}) is None
        for element, bits in widths.items()
    )


def becomes_sort(target: Target, node: Node) -> bool:
    """Whether a top_k is made a sort, to be lowered: the target refuses sorts, does not take it whole, and takes what
    floats are ordered by.

    Of one of which only the values are read a converter makes a sort: LiteRT's does, which has no kernel for that.
    """
    operand = node.operand(0)
    if target.refuses_op(SORT) is None or not operand.is_static or not takes_bits(target, (operand.element_type,)):
        return False
    return TOP_K not in target.composites or not node.result(1).is_used
