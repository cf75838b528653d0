"""Sorts by what a consumer does not read of a comparator, or in an order of equal rows that is another one."""

from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.ops.names import COMPARE, CONSTANT, SELECT, SORT
from hlo_lower.ops.quirks.quirk import Quirk, Rules, module

MOST_INNER = 20
"""Values of a comparator that are looked at."""


def _side(value: Value, block: Block) -> int | None:
    """Which of the first two arguments of a comparator a value is, or is where it is neither zero nor NaN; else None.

    JAX compares floats with one zero and one NaN in the place of all: selects by comparisons for equality.
    """
    wanted, found = [value], set[int]()
    for _ in range(MOST_INNER):
        if not wanted:
            break
        one = wanted.pop()
        node = one.node
        if one.block == block:
            found.add(one.number)
        elif node is None or not _is_canonizing(node):
            return None
        else:
            wanted += node.operands
    return found.pop() if not wanted and len(found) == 1 and max(found) < 2 else None


def _is_canonizing(node: Node) -> bool:
    direction = str(node.attribute("comparison_direction"))
    return node.name in (CONSTANT, SELECT) or (node.name == COMPARE and direction.rstrip(">").endswith(("EQ", "NE")))


def goes_up(sort: Node) -> bool | None:
    """Whether a sort goes up by the elements of its first operand alone; None where it goes by anything else.

    Of floats that is their order as numbers, with one zero and NaN last, whatever its sign.
    """
    block = sort.blocks[0]
    last = block.terminator.operand(0).node
    if last is None or last.name != COMPARE:
        return None
    sides = [_side(value, block) for value in last.operands]
    direction = str(last.attribute("comparison_direction")).rstrip(">")[-2:]
    is_raw = all(value.block == block for value in last.operands)
    is_of_bits = is_raw and last.operand(0).element.is_float and "TOTALORDER" in str(last.attribute("compare_type"))
    return direction == "LT" if direction in ("LT", "GT") and sides == [0, 1] and not is_of_bits else None


T, S = "tensor<4xi32>", "tensor<i32>"


def _sort(compared: str, *lines: str) -> str:
    """A sort of two operands."""
    return module(
        f"%x: {T}, %y: {T}",
        T,
        '%s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({',
        f"^bb0(%a: {S}, %b: {S}, %c: {S}, %d: {S}):",
        *lines,
        f"  %p = stablehlo.{compared}",
        "  stablehlo.return %p : tensor<i1>",
        f"}}) : ({T}, {T}) -> ({T}, {T})",
        f"%r = stablehlo.add %s#0, %s#1 : {T}",
    )


FIRST = "it looks at one comparison of the comparator, and sorts by the first operand"

SEVERAL = Quirk(
    "sort by another order",
    (SORT,),
    {"mps": FIRST, "tt": FIRST},
    "a stable sort for each key, the last key first, or a form without a sort",
    _sort(
        "or %l, %n : tensor<i1>",
        f"  %l = stablehlo.compare LT, %a, %b : ({S}, {S}) -> tensor<i1>",
        f"  %e = stablehlo.compare EQ, %a, %b : ({S}, {S}) -> tensor<i1>",
        f"  %m = stablehlo.compare LT, %c, %d : ({S}, {S}) -> tensor<i1>",
        "  %n = stablehlo.and %e, %m : tensor<i1>",
    ),
    lambda _graph, node: goes_up(node) is None,
    (Rules(SORT, ("sort_to_stable_sorts",)),),
)

DOWN = Quirk(
    "sort of several downwards",
    (SORT,),
    {"mps": "it sorts upwards and reverses, equal rows too"},
    "a stable sort upwards, by the complement",
    _sort(f"compare GT, %a, %b : ({S}, {S}) -> tensor<i1>"),
    lambda _graph, node: len(node.results) > 1 and goes_up(node) is False,
    (Rules(SORT, ("sort_to_stable_sorts",)),),
)
