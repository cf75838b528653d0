"""Integers that are divided by 0, or by -1."""

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.bounds import compared_with, ends_of, source_of
from hlo_lower.ops.names import DIVIDE, NEGATE, OR, SELECT
from hlo_lower.ops.quirks.quirk import Quirk, Rewrite, module, over_each


def _may_stop(graph: Graph, node: Node) -> bool:
    """Whether a divisor may be 0 or -1."""
    divisor = node.operand(1)
    return (
        node.is_static
        and divisor.element.is_integer
        and not all(_is_never(graph, number, divisor) for number in (0, -1))
    )


def _is_never(graph: Graph, number: int, value: Value, refuted: tuple[Value, ...] = ()) -> bool:
    """Whether no element of a value is a number, where predicates of its shape do not hold.

    select (%d == 0 or %d == -1), 1, %d                 neither 0 nor -1
    select (%d == -1), 1, (select (%d == 0), 1, %d)     as well
    """
    if any(_asks_for(number, predicate, value) for predicate in refuted):
        return True
    moved = source_of(value)
    if moved != value:  # what is known of other places
        return _is_never(graph, number, moved)
    numbers, made, (low, high) = value.constant(), value.node, ends_of(graph, value)
    if numbers is not None:
        return bool((numbers + -number != 0).all())
    if not low <= number <= high:
        return True
    if made is None or made.name != SELECT or made.operand(0).shape != value.shape:
        return False
    predicate, on_true, on_false = made.operands
    return _is_never(graph, number, on_true, refuted) and _is_never(graph, number, on_false, (*refuted, predicate))


def _asks_for(number: int, predicate: Value, value: Value) -> bool:
    """Whether a predicate holds wherever a value is a number."""
    made = predicate.node
    if made is not None and made.name == OR:
        return any(_asks_for(number, one, value) for one in made.operands)
    numbers = compared_with(predicate, value, "EQ")
    return numbers is not None and bool((numbers == number).all())


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
