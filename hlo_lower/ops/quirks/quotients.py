"""Integers that are divided by 0, or by -1."""

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.bounds import compared_with, ends_of, source_of
from hlo_lower.ops.names import DIVIDE, NEGATE, OR, SELECT
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, module, over_each


def _may_stop(graph: Graph, node: Node) -> bool:
    """Whether a divisor may be 0 or -1."""
    divisor = node.operand(1)
    return node.is_static and divisor.element.is_integer and not _is_safe(graph, divisor)


def _is_safe(graph: Graph, divisor: Value) -> bool:
    """Whether it is a constant of others, above 0, below -1, or what the cure chooses."""
    divisor = source_of(divisor)
    numbers, made = divisor.constant(), divisor.node
    if numbers is not None:
        return bool(((numbers != 0) & (numbers + 1 != 0)).all())
    low, high = ends_of(graph, divisor)
    if low > 0 or high < -1:
        return True
    return made is not None and made.name == SELECT and _is_chosen(graph, made)


def _is_chosen(graph: Graph, select: Node) -> bool:
    """Whether a constant is chosen where a value is 0 or -1, which is chosen elsewhere."""
    predicate, chosen, value = select.operands
    asked = predicate.node.operands if predicate.node is not None and predicate.node.name == OR else ()
    return _is_safe(graph, chosen) and {_number_met(one, value) for one in asked} == {0, -1}


def _number_met(asked: Value, value: Value) -> int | None:
    """The number that a value is asked to be."""
    numbers = compared_with(asked, value, "EQ")
    is_one = numbers is not None and numbers.size > 0 and (numbers == numbers.flat[0]).all()
    return int(numbers.flat[0]) if numbers is not None and is_one else None


@over_each(DIVIDE)
def divide_by_others(graph: Graph, node: Node) -> None:
    """Divide by 1 in the place of 0 and -1.

        r = x / d   ->   q = x / (d == 0 or d == -1 ? 1 : d);   r = d == 0 ? -1 : (d == -1 ? -x : q)

    Equal: of integers XLA's x / 0 is -1, all bits, and x / -1 is -x, which wraps around as that does.
    """
    if not _may_stop(graph, node) or node.operand(1).element.is_unsigned:
        return
    build, (x, d) = Builder.before(node), node.operands
    shape, element = d.static_shape, d.element_type
    is_zero, is_minus = (build.compare(d, "EQ", number) for number in (0, -1))
    divisor = build.select(build.or_(is_zero, is_minus), build.constant(1, shape, element), d)
    quotient = build.clone(node, [x, divisor], [x.raw.type]).result()
    found = build.select(is_minus, build.elementwise(NEGATE, x), quotient)
    result = build.select(is_zero, build.constant(-1, shape, element), found)
    node.result().raw.replace_all_uses_with(result.raw)
    node.raw.erase()


V = "tensor<4xi32>"

DIVISOR = Quirk(
    "divide of integers by 0 or -1",
    (DIVIDE,),
    {
        "litert": "its kernel refuses 0, which ends the run, and of the least number by -1 the process",
        "coreml": "of 0 it is 0, or what its kernel makes of it",
    },
    "a division by 1 there, and what XLA gives",
    module(f"%x: {V}, %y: {V}", V, f"%r = stablehlo.divide %x, %y : {V}"),
    _may_stop,
    (Rewrite("guard-divisors", "divides by 1 in the place of 0 and -1", divide_by_others),),
    is_reported=False,
)
