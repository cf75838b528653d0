"""Sort comparators: which are proved to be an order, and what they sort by first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.facts.sort.comparator import SortOrder, sort_keys, sort_order
from hlo_lower.ir.reader import read


def order_of(lines, element="i32"):
    """The order of a sort of two tensors whose comparator has these lines; %a, %b and %c, %d are the pairs."""
    text = f"""func.func public @main(%x: tensor<6x$t>, %y: tensor<6xi32>) -> tensor<6xi32> {{
  %s:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64}}> ({{
  ^bb0(%a: tensor<$t>, %b: tensor<$t>, %c: tensor<i32>, %d: tensor<i32>):
    {lines}
    stablehlo.return %r : tensor<i1>
  }}) : (tensor<6x$t>, tensor<6xi32>) -> (tensor<6x$t>, tensor<6xi32>)
  return %s#1 : tensor<6xi32>
}}""".replace("$t", element)
    graph = read(text)
    return sort_order(graph.main.body.terminator.operand(0).node)


def compare(name, direction, a, b, kind="SIGNED", element="i32"):
    """A line that compares."""
    types = f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>"
    return f"%{name} = stablehlo.compare {direction}, %{a}, %{b}, {kind} : {types}\n"


def both(name, op, a, b):
    """A line that joins two booleans."""
    return f"%{name} = stablehlo.{op} %{a}, %{b} : tensor<i1>\n"


CHAIN = compare("lt", "LT", "a", "b") + compare("eq", "EQ", "a", "b") + compare("rest", "LT", "c", "d")


@pytest.mark.parametrize(
    ("lines", "element", "expected"),
    [
        (compare("r", "LT", "a", "b"), "i32", SortOrder(0, True)),
        (compare("r", "GT", "a", "b"), "i32", SortOrder(0, False)),
        (compare("r", "GT", "b", "a"), "i32", SortOrder(0, True)),
        (compare("r", "LT", "c", "d"), "i32", SortOrder(1, True)),
        (compare("r", "LT", "a", "b", "TOTALORDER", "f32"), "f32", SortOrder(0, True)),
        (compare("r", "LT", "a", "b", "FLOAT", "f32"), "f32", None),  # NaN is below nothing
        (compare("r", "LE", "a", "b"), "i32", None),  # not strict
        (compare("r", "EQ", "a", "b"), "i32", None),
        (compare("r", "LT", "a", "c"), "i32", None),
        (compare("r", "LT", "a", "a"), "i32", None),
        ("%n = stablehlo.negate %a : tensor<i32>\n%m = stablehlo.negate %b : tensor<i32>\n"
         + compare("r", "LT", "n", "m"), "i32", SortOrder(None, True)),
        ("%n = stablehlo.negate %a : tensor<i32>\n%m = stablehlo.abs %b : tensor<i32>\n"
         + compare("r", "LT", "n", "m"), "i32", None),
        ("%n = stablehlo.add %a, %d : tensor<i32>\n%m = stablehlo.add %b, %c : tensor<i32>\n"
         + compare("r", "LT", "n", "m"), "i32", None),  # no key of one side
        (CHAIN + both("and", "and", "eq", "rest") + both("r", "or", "lt", "and"), "i32", SortOrder(0, True)),
        (CHAIN + both("and", "and", "rest", "eq") + both("r", "or", "and", "lt"), "i32", SortOrder(0, True)),
        (CHAIN + both("r", "or", "lt", "rest"), "i32", None),
        (CHAIN + both("r", "and", "lt", "rest"), "i32", None),
        (CHAIN.replace("EQ", "NE") + both("and", "and", "eq", "rest") + both("r", "or", "lt", "and"), "i32", None),
        (CHAIN.replace("EQ, %a", "EQ, %c") + both("and", "and", "eq", "rest") + both("r", "or", "lt", "and"), "i32",
         None),
        ("%r = stablehlo.constant dense<true> : tensor<i1>\n", "i32", None),
    ],
)  # fmt: skip
def test_comparators(lines, element, expected):
    """A strict order of one key of both sides is one, and so is a chain of them; anything else proves nothing."""
    assert order_of(lines, element) == expected


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint32", "bool", "complex64"])
def test_jax_sorts_by_a_proved_order(dtype):
    """What JAX emits for a sort of any type is proved to be an order."""
    lowered = jax.jit(lambda x: jnp.argsort(x)).lower(np.zeros(6, jnp.dtype(dtype)))
    graph = read(lowered.as_text())
    sorts = []
    graph.walk(lambda node: sorts.append(node) if node.name == "stablehlo.sort" else None)
    assert [sort_order(node) is not None for node in sorts] == [True]


def keys_of(lines):
    """The keys of a sort of two i32 tensors, as (operand, side, ascending)."""
    text = f"""func.func public @main(%x: tensor<6xi32>, %y: tensor<6xi32>) -> tensor<6xi32> {{
  %s:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64}}> ({{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    {lines}
    stablehlo.return %r : tensor<i1>
  }}) : (tensor<6xi32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>)
  return %s#1 : tensor<6xi32>
}}"""
    graph = read(text)
    sort = graph.main.body.terminator.operand(0).node
    return [(key.value.number // 2, key.side, key.is_ascending) for key in sort_keys(sort)]


SELECTED = CHAIN + "%r = stablehlo.select %eq, %rest, %lt : tensor<i1>, tensor<i1>\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (CHAIN + both("and", "and", "eq", "rest") + both("r", "or", "lt", "and"), [(0, 0, True), (1, 0, True)]),
        (SELECTED, [(0, 0, True), (1, 0, True)]),
        (SELECTED.replace("LT, %c, %d", "LT, %d, %c"), [(0, 0, True), (1, 1, False)]),
        (compare("ge", "GE", "a", "b") + "%r = stablehlo.not %ge : tensor<i1>\n", [(0, 0, True)]),
        (compare("lt", "LT", "a", "b") + "%r = stablehlo.not %lt : tensor<i1>\n", []),  # equal ones are not told apart
        (SELECTED.replace("EQ, %a, %b", "EQ, %c, %d"), []),  # equal by another key
        (SELECTED.replace("EQ, %a, %b", "NE, %a, %b"), []),
    ],
)
def test_the_keys_of_a_comparator(lines, expected):
    """All of them in order, also where a select decides, and where a comparison is negated."""
    assert expected == keys_of(lines)
