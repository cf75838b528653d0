"""Value ranges of what reductions fold, proved by induction over the fold."""

from math import prod

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.ranges.loop_ranges import keeps_within, uniform, within
from hlo_lower.facts.values.evidence import Evidence, merge
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node
from hlo_lower.ops.names import ADD, REDUCE


def reduction_range(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The interval of a result of `reduce` or `reduce_window` that is one of what it folds, or a sum of few.

    If the body, given values in the hull of the operand and of the initial value, returns one in the same hull, so
    does the whole fold: a maximum, a selection, the index of an argmax. A sum of n values in [lo, hi] that begins
    with 0 is in [min(n lo, 0), max(n hi, 0)].
    """
    count, number = len(node.results), site.value.number
    operand, start = node.operand(number), node.operand(count + number)
    result = node.result(number)
    tensor = operand.tensor_type
    if tensor is None or not (tensor.is_static and result.is_static) or type_range(tensor.element_name) is None:
        return None
    if result.element_type != operand.element_type or 0 in operand.static_shape or 0 in result.static_shape:
        return None
    folded, first = (ranges.of(site.to(v)) for v in (operand, start))
    hull = min(folded.hull()[0], first.hull()[0]), max(folded.hull()[1], first.hull()[1])
    like = Interval.of_type(result.static_shape, result.element_type)
    body = node.blocks[0]
    returned = body.terminator.operand(number)
    arguments = (body.argument(number), body.argument(count + number))
    why = merge((folded.evidence, first.evidence))
    if keeps_within(ranges, hull, [*map(site.to, arguments)], site.to(returned)):
        return uniform(like, hull).because(Evidence.at(node, Code.FOLDED(*hull), why))
    adder = returned.node
    if adder is None or adder.name != ADD or set(adder.operands) != set(arguments):
        return None
    if operand.element_type == "i1":
        return None
    # How many elements go into one element of the result.
    sizes = operand.static_shape
    if node.name == REDUCE:
        sizes = tuple(sizes[d] for d in node.integers("dimensions"))
    else:
        sizes = node.integers("window_dimensions")
    terms = prod(sizes)
    low, high = folded.hull()
    low, high = min(terms * low, 0), max(terms * high, 0)
    allowed = type_range(operand.element_type)
    if first.hull() != (0, 0):  # it may be added any number of times
        return None
    if allowed is None or not within((low, high), allowed):
        return None
    return uniform(like, (low, high)).because(Evidence.at(node, Code.SUMMED(terms, low, high), why))
