"""Sort comparators: which are proved to be an order, and what they sort by first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.facts.sort.comparator import SortOrder, sort_keys, sort_order
from hlo_lower.ir.reader import read


def sort_by(lines, element="i32"):
    """A module and its sort of two tensors whose comparator has these lines; %a, %b and %c, %d are the pairs."""
    lines = f"%s, %t = sort(%x, %y) <dimension = 0> {{ %a, %b, %c, %d:\n{lines}; return %r }}\nreturn %t"
    graph = read(module(f"%x: 6x{element}, %y: 6xi32", lines))
    return graph, graph.main.body.terminator.operand(0).node


CHAIN = "%lt = compare LT, %a, %b; %eq = compare EQ, %a, %b; %rest = compare LT, %c, %d\n"
BOTH = "%and = and %eq, %rest; %r = or %lt, %and"


@pytest.mark.parametrize(
    ("lines", "element", "expected"),
    [
        ("%r = compare LT, %a, %b", "i32", SortOrder(0, True)),
        ("%r = compare GT, %b, %a", "i32", SortOrder(0, True)),
        ("%r = compare LT, %c, %d", "i32", SortOrder(1, True)),
        ("%r = compare LT, %a, %b, TOTALORDER", "f32", SortOrder(0, True)),
        ("%r = compare LT, %a, %b, FLOAT", "f32", None),  # NaN is below nothing
        ("%r = compare EQ, %a, %b", "i32", None),
        ("%r = compare LT, %a, %a", "i32", None),
        ("%n = negate %a; %m = negate %b; %r = compare LT, %n, %m", "i32", SortOrder(None, True)),
        ("%n = negate %a; %m = abs %b; %r = compare LT, %n, %m", "i32", None),
        ("%n = add %a, %d; %m = add %b, %c; %r = compare LT, %n, %m", "i32", None),  # no key of one side
        (CHAIN + BOTH, "i32", SortOrder(0, True)),
        (CHAIN + "%r = or %lt, %rest", "i32", None),
        (CHAIN.replace("EQ", "NE") + BOTH, "i32", None),
        (CHAIN.replace("EQ, %a", "EQ, %c") + BOTH, "i32", None),
        ("%r = constant true : i1", "i32", None),
    ],
)
def test_comparators(lines, element, expected):
    """A strict order of one key of both sides is one, and so is a chain of them; anything else proves nothing."""
    _graph, sort = sort_by(lines, element)
    assert sort_order(sort) == expected


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint32", "complex64"])
def test_jax_sorts_by_a_proved_order(dtype):
    """What JAX emits for a sort of any type is proved to be an order."""
    graph = read(jax.jit(lambda x: jnp.argsort(x)).lower(np.zeros(6, jnp.dtype(dtype))).as_text())
    sorts = [node for node in graph.nodes() if node.name == "stablehlo.sort"]
    assert [sort_order(node) is not None for node in sorts] == [True]


SELECTED = CHAIN + "%r = select %eq, %rest, %lt"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (CHAIN + BOTH, [(0, 0, True), (1, 0, True)]),
        (SELECTED, [(0, 0, True), (1, 0, True)]),
        (SELECTED.replace("LT, %c, %d", "LT, %d, %c"), [(0, 0, True), (1, 1, False)]),
        ("%lt = compare LT, %a, %b; %r = not %lt", []),  # equal ones are not told apart
        (SELECTED.replace("EQ, %a, %b", "EQ, %c, %d"), []),  # equal by another key
        (SELECTED.replace("EQ, %a, %b", "NE, %a, %b"), []),
    ],
)
def test_the_keys_of_a_comparator(lines, expected):
    """All of them in order, as (operand, side, ascending), also where a select decides or a comparison is negated."""
    _graph, sort = sort_by(lines)
    assert expected == [(key.value.number // 2, key.side, key.is_ascending) for key in sort_keys(sort)]
