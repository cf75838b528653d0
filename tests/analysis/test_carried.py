"""Ranges of what loops carry and reductions fold: a hit and a near miss for each, on text and on exports from JAX."""

import jax
import jax.numpy as jnp
import pytest

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
DOWN = "%n = stablehlo.subtract %i, %one"


def analyse(text):
    """The hulls of what the public function returns."""
    graph = read(text)
    analysis = IndexAnalysis(graph)
    return [analysis.of(Site(value)).hull() for value in graph.main.body.terminator.operands]


def loop(
    following="%n = stablehlo.add %i, %one", condition="compare LT, %i, %end", begin=0, end=5, element="i32", more=""
):
    """Hulls of a counter: inside of the loop's body, and behind the loop."""
    s = f"tensor<{element}>"
    text = f"""func.func public @main(%x: {s}) -> {s} {{
  %begin = stablehlo.constant dense<{begin}> : {s}
  %end = stablehlo.constant dense<{end}> : {s}
  %one = stablehlo.constant dense<1> : {s}
  %zero = stablehlo.constant dense<0> : {s}
  {more}
  %r = stablehlo.while(%i = %begin) : {s}
  cond {{
    %p = stablehlo.{condition} : ({s}, {s}) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    {following} : {s}
    stablehlo.return %n : {s}
  }}
  return %r : {s}
}}"""
    graph = read(text)
    analysis = IndexAnalysis(graph)
    behind = graph.main.body.terminator.operand(0)
    return analysis.of(Site(behind.node.blocks[1].argument(0))).hull(), analysis.of(Site(behind)).hull()


@pytest.mark.parametrize(
    ("given", "inside", "behind"),
    [
        ({}, (0, 4), (0, 5)),
        ({"condition": "compare LE, %i, %end"}, (0, 5), (0, 6)),
        ({"condition": "compare GT, %end, %i"}, (0, 4), (0, 5)),
        ({"condition": "compare GE, %end, %i"}, (0, 5), (0, 6)),
        ({"following": DOWN, "condition": "compare GT, %i, %zero", "begin": 7}, (1, 7), (0, 7)),
        ({"following": DOWN, "condition": "compare GE, %i, %zero", "begin": 7}, (0, 7), (-1, 7)),
        ({"condition": "compare NE, %i, %end"}, I32, I32),
        ({"condition": "compare LT, %x, %end"}, I32, I32),
        ({"condition": "compare LT, %i, %x"}, (0, I32[1] - 1), (0, I32[1])),
        ({"following": "%n = stablehlo.multiply %i, %one"}, (0, 0), (0, 0)),
    ],
)  # fmt: skip
def test_a_counter(given, inside, behind):
    """A counter is bounded by where it starts and by its condition: one less inside of the loop than behind it."""
    assert loop(**given) == (inside, behind)


@pytest.mark.parametrize(("condition", "bounded"), [("compare LT, %i, %end", True), ("compare LE, %i, %end", False)])
def test_a_counter_that_may_wrap_around(condition, bounded):
    """A counter that may reach the end of its type and go on is anything."""
    inside, behind = loop(condition=condition, end=127, element="i8")
    assert (inside, behind) == (((0, 126), (0, 127)) if bounded else ((-128, 127),) * 2)


def test_a_ring_buffer():
    """(i + 1) rem n stays in [0, n - 1] whatever the condition says; without the rem it does not."""
    ring = "%m = stablehlo.add %i, %one : tensor<i32>\n    %n = stablehlo.remainder %m, %end"
    assert loop(ring, "compare NE, %i, %x") == ((0, 4), (0, 4))
    assert loop("%n = stablehlo.add %i, %one", "compare NE, %i, %x") == (I32, I32)


def test_a_clamp_in_the_body():
    """What is clamped in each iteration stays between the bounds, together with what it starts with."""
    clamp = "%m = stablehlo.add %i, %x : tensor<i32>\n    %n = stablehlo.clamp %zero, %m, %end"
    assert loop(clamp, "compare NE, %i, %x") == ((0, 5), (0, 5))
    assert loop(clamp, "compare NE, %i, %x", begin=9) == ((0, 9), (0, 9))


CARRIED_BOUND = """func.func public @main(%x: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %end = %five) : tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, END : tensor<i32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<i32>
}"""


def test_a_bound_that_the_loop_carries():
    """The bound may be carried through the loop unchanged; a bound that the loop changes is none."""
    assert analyse(CARRIED_BOUND.replace("END", "%end")) == [(0, 5), (5, 5)]
    assert analyse(CARRIED_BOUND.replace("END", "%x")) == [(0, I32[1]), I32]


def test_values_that_depend_on_each_other_end():
    """Two carried values that are each other's next ones are not followed for ever; swapped, they keep their hull."""
    swap = CARRIED_BOUND.replace("stablehlo.return %n, END", "stablehlo.return %end, %i")
    for low, high in analyse(swap):
        assert low <= 0
        assert high >= 5
    crossed = CARRIED_BOUND.replace("stablehlo.return %n, END", "stablehlo.return %end, %n")
    assert analyse(crossed)[0][1] >= 5


def test_a_counter_within_a_counter():
    """A loop in a loop: the inner counter is bounded in the outer loop's carried value; a proof that needs a third
    counter is not made."""
    text = """func.func public @main() -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %at = %zero) : tensor<i32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s:2 = stablehlo.while(%j = %zero, %b = %zero) : tensor<i32>, tensor<i32>
    cond {
      %q = stablehlo.compare LT, %j, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %q : tensor<i1>
    } do {
      %row = stablehlo.multiply %i, %four : tensor<i32>
      %place = stablehlo.add %row, %j : tensor<i32>
      %k = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %k, %place : tensor<i32>, tensor<i32>
    }
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %s#1 : tensor<i32>, tensor<i32>
  }
  return %r#1 : tensor<i32>
}"""
    assert analyse(text.replace("%n, %s#1", "%n, %s#0")) == [(0, 4)]
    assert analyse(text) == [I32]


def export(function, *arguments):
    """The hulls of the results of a function that JAX exports."""
    return analyse(jax.jit(function).lower(*arguments).as_text())


def test_loops_of_jax():
    """The counter of while_loop, a ring buffer and what scan carries through a minimum are bounded."""

    def count(end):
        return jax.lax.while_loop(lambda i: i < end, lambda i: i + 1, 0)

    assert export(lambda: count(7)) == [(0, 7)]
    assert export(lambda x: count(x), 3) == [(0, I32[1])]
    assert export(lambda: jax.lax.fori_loop(0, 7, lambda i, at: jax.lax.rem(at + 1, 4), 0)) == [(0, 3)]
    assert export(lambda: jax.lax.scan(lambda at, _: (jnp.minimum(at + 1, 9), at), 0, None, length=20)[0]) == [(0, 9)]
    assert export(lambda x: jax.lax.fori_loop(0, 7, lambda i, at: at + x, 0), 3) == [I32]


def test_the_index_of_a_fori_loop():
    """The index that fori_loop gives its body is in [0, n - 1], although another counter is the bounded one."""
    assert export(lambda: jax.lax.fori_loop(0, 7, lambda i, at: i, 0)) == [(0, 6)]


X = jnp.zeros((4, 6), jnp.int32)
F = jnp.zeros((4, 6), jnp.float32)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, f: jnp.clip(x, 2, 5).max(1), (-(2**31), 5)),  # the initial value counts
        (lambda x, f: jnp.clip(x, 2, 5).min(1), (2, 2**31 - 1)),
        (lambda x, f: jnp.argmax(f, 1), (0, 5)),
        (lambda x, f: jnp.argmin(f, 0), (0, 3)),
        (lambda x, f: (x > 0).sum(1), (0, 6)),
        (lambda x, f: (x > 0).sum(), (0, 24)),
        (lambda x, f: jnp.clip(x, -2, 3).sum(0), (-8, 12)),
        (lambda x, f: x.sum(0), I32),
        (lambda x, f: jnp.clip(x, 0, 2**30).sum(0), I32),
        (lambda x, f: jax.lax.cumsum(jnp.clip(x, 0, 2), 1), (0, 12)),
        (lambda x, f: jax.lax.reduce(jnp.clip(x, 1, 3), 1, jax.lax.mul, (1,)), I32),
        (lambda x, f: jnp.sort(jnp.clip(x, 1, 3), 1), (1, 3)),
        (lambda x, f: jnp.argsort(f, 1), (0, 5)),
        (lambda x, f: jax.lax.top_k(f, 2)[1], (0, 5)),
        (lambda x, f: jax.lax.top_k(jnp.clip(x, 1, 3), 2)[0], (1, 3)),
        (lambda x, f: jnp.array([3, 1, 4])[jnp.clip(x, 0, 2)], (1, 4)),
        (lambda x, f: jnp.pad(jnp.clip(x, 1, 3), 1), (0, 3)),
        (lambda x, f: jax.lax.div(jnp.clip(x, -7, 9), jnp.int32(4)), (-1, 2)),
        (lambda x, f: jax.lax.div(jnp.clip(x, -7, 9), jnp.int32(-4)), I32),
        (lambda x, f: jax.lax.div(jnp.int32(7), jnp.clip(x, 0, 9)), I32),
        (lambda x, f: jnp.sign(jnp.clip(x, 0, 9)), (0, 1)),
        (lambda x, f: jnp.sign(x), (-1, 1)),
        (lambda x, f: jnp.abs(jnp.clip(x, -7, 3)), (0, 7)),
        (lambda x, f: jnp.abs(jnp.clip(x, -7, -3)), (3, 7)),
        (lambda x, f: jnp.abs(x), I32),
        (lambda x, f: jax.lax.shift_right_arithmetic(jnp.clip(x, -7, 9), 1), (-4, 4)),
        (lambda x, f: jax.lax.shift_right_logical(jnp.clip(x, 0, 9), 1), (0, 4)),
        (lambda x, f: jax.lax.shift_right_logical(x, 1), I32),
        (lambda x, f: jax.lax.shift_right_arithmetic(jnp.clip(x, 0, 9), x), I32),
        (lambda x, f: jnp.clip(x, -9, 9) // 4, (-3, 2)),
        (lambda x, f: jax.lax.rem(jnp.clip(x, -9, 9), 4), (-3, 3)),
        (lambda x, f: jnp.clip(x, 0, 9) % 4, (0, 3)),
    ],
)  # fmt: skip
def test_what_is_computed_from_a_bounded_index(function, expected):
    """Folds, orders, look-ups and divisions of bounded integers are bounded; what may leave the type is anything."""
    [low, high], *_ = export(function, X, F)
    assert (low, high) == expected


FOLDS = ("maximum %a, %b", "xor %a, %b", "add %a, %b", "add %a, %a", "subtract %a, %b")


def test_a_fold_of_a_general_region_is_anything():
    """A region that gives more than what it is given is not bounded."""
    text = """func.func public @main(%x: tensor<6xi32>) -> tensor<i32> {
  %lo = stablehlo.constant dense<0> : tensor<i32>
  %hi = stablehlo.constant dense<3> : tensor<i32>
  %c = stablehlo.clamp %lo, %x, %hi : (tensor<i32>, tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
  %r = stablehlo.reduce(%c init: %lo) across dimensions = [0] : (tensor<6xi32>, tensor<i32>) -> tensor<i32>
  reducer(%a: tensor<i32>, %b: tensor<i32>) {
    %s = stablehlo.OP : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }
  return %r : tensor<i32>
}"""
    found = {op: analyse(text.replace("OP", op))[0] for op in FOLDS}
    bounded = {"maximum %a, %b": (0, 3), "xor %a, %b": (0, 3), "add %a, %b": (0, 18)}
    assert found == {**bounded, "add %a, %a": I32, "subtract %a, %b": I32}
