"""Ranges of what loops carry, reductions fold and scatters write: a hit and a near miss each, on text and from JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
UP, DOWN = "add %i, 1", "subtract %i, 1"


def analyse(text):
    """The hulls of what the public function returns."""
    graph = read(text)
    analysis = IndexAnalysis(graph)
    return [analysis.of(Site(value)).hull() for value in graph.main.body.terminator.operands]


@pytest.mark.parametrize(
    ("begin", "condition", "following", "element", "inside", "behind"),
    [
        # a counter is bounded by where it starts and by its condition: one less inside of the loop than behind it
        (0, "LT, %i, 5", UP, "i32", (0, 4), (0, 5)),
        (0, "LE, %i, 5", UP, "i32", (0, 5), (0, 6)),
        (0, "GT, %five, %i", UP, "i32", (0, 4), (0, 5)),
        (7, "GT, %i, 0", DOWN, "i32", (1, 7), (0, 7)),
        (7, "GE, %i, 0", DOWN, "i32", (0, 7), (-1, 7)),
        (0, "NE, %i, %five", UP, "i32", I32, I32),
        (0, "LT, %x, 5", UP, "i32", I32, I32),
        (0, "LT, %i, %x", UP, "i32", (0, I32[1] - 1), (0, I32[1])),
        (0, "LT, %i, 5", "multiply %i, 1", "i32", (0, 0), (0, 0)),
        # one that may reach the end of its type and go on is anything
        (0, "LT, %i, 127", UP, "i8", (0, 126), (0, 127)),
        (0, "LE, %i, 127", UP, "i8", (-128, 127), (-128, 127)),
        (0, "NE, %i, %x", "remainder %m, 5", "i32", (0, 4), (0, 4)),
        # a step is looked for through conversions of a type to itself, and through no other
        (0, "LT, %i, 200", "convert %step -> i32", "i32", (0, 199), (0, 200)),
        (0, "LT, %i, 200", "convert %wraps -> i32", "i32", (-128, 127), (-128, 127)),
        # what is clamped in each iteration stays between the bounds, together with what it starts with
        (0, "NE, %i, %x", "clamp 0, %moved, 5", "i32", (0, 5), (0, 5)),
        (9, "NE, %i, %x", "clamp 0, %moved, 5", "i32", (0, 9), (0, 9)),
    ],
)
def test_a_counter(begin, condition, following, element, inside, behind):
    """The range of what a loop carries, inside of its body and behind it."""
    lines = f"""%begin = constant {begin} : {element}; %five = constant 5 : {element}
        %r = while(%i = %begin) cond {{ %p = compare {condition}; return %p
        }} do {{ %m = add %i, 1; %moved = add %i, %x; %same = convert %i -> {element}
        %step = add %same, 1; %byte = convert %i -> i8; %wraps = add %byte, 1; %n = {following}; return %n }}"""
    graph = read(module(f"%x: {element}", lines))
    result, analysis = graph.main.body.terminator.operand(0), IndexAnalysis(graph)
    argument = result.node.blocks[1].argument(0)
    assert [analysis.of(Site(value)).hull() for value in (argument, result)] == [inside, behind]


def carried_bound(returned):
    """A counter and its bound, which the loop carries, too."""
    lines = f"""%zero = constant 0 : i32; %five = constant 5 : i32
        %r:2 = while(%i = %zero, %end = %five) cond {{ %p = compare LT, %i, %end; return %p
        }} do {{ %n = add %i, 1; return {returned} }}
        return %r#0, %r#1"""
    return analyse(module("%x: i32", lines))


def test_a_bound_that_the_loop_carries():
    """Carried unchanged it is one, and one that the loop changes is none."""
    assert carried_bound("%n, %end") == [(0, 5), (5, 5)]
    assert carried_bound("%n, %x") == [(0, I32[1]), I32]
    # values that are each other's next ones are not followed for ever; swapped, they keep their hull
    for low, high in carried_bound("%end, %i"):
        assert low <= 0
        assert high >= 5
    assert carried_bound("%end, %n")[0][1] >= 5


@pytest.mark.parametrize(("last", "expected"), [("%s#0", (0, 4)), ("%s#1", I32)])
def test_a_counter_within_a_counter(last, expected):
    """The inner counter is bounded in the outer loop's carried value; a proof that needs a third one is not made."""
    lines = f"""%zero = constant 0 : i32
        %r:2 = while(%i = %zero, %at = %zero) cond {{ %p = compare LT, %i, 3; return %p
        }} do {{
          %s:2 = while(%j = %zero, %b = %zero) cond {{ %q = compare LT, %j, 4; return %q
          }} do {{ %row = multiply %i, 4; %place = add %row, %j; %k = add %j, 1; return %k, %place }}
          %n = add %i, 1; return %n, {last}
        }}
        return %r#1"""
    assert analyse(module("", lines)) == [expected]


def export(function, *arguments):
    """The hulls of the results of a function that JAX exports."""
    return analyse(jax.jit(function).lower(*arguments).as_text())


N = 6
X, F, M = jnp.zeros((4, N), jnp.int32), jnp.zeros((4, N)), jnp.zeros(N, bool)


def at(size, rows, updates, how="add"):
    """A scatter of points into zeros."""
    return getattr(jnp.zeros(size, jnp.int32).at[rows], how)(updates, mode="drop")


def normalised(x, mask):
    """A negative index made positive, or whatever a mask says, by a function of its own."""
    return jnp.where(x < 0 if mask is None else mask, x + 4, x)


MATRICES = [
    (lambda x, f: jnp.clip(x, 2, 5).max(1), (-(2**31), 5)),  # the initial value counts
    (lambda x, f: jnp.clip(x, 2, 5).min(1), (2, 2**31 - 1)),
    (lambda x, f: jnp.argmax(f, 1), (0, 5)),
    (lambda x, f: jnp.argmin(f, 0), (0, 3)),
    (lambda x, f: (x > 0).sum(1), (0, 6)),
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
    (lambda x, f: jax.lax.div(jnp.int32(7), jnp.clip(x, 0, 9)), I32),
    (lambda x, f: jnp.sign(jnp.clip(x, 0, 9)), (0, 1)),
    (lambda x, f: jnp.abs(jnp.clip(x, -7, 3)), (0, 7)),
    (lambda x, f: jnp.abs(x), I32),
    (lambda x, f: jax.lax.shift_right_arithmetic(jnp.clip(x, -7, 9), 1), (-4, 4)),
    (lambda x, f: jax.lax.shift_right_logical(jnp.clip(x, 0, 9), 1), (0, 4)),
    (lambda x, f: jax.lax.shift_right_logical(x, 1), I32),
    (lambda x, f: jax.lax.shift_right_arithmetic(jnp.clip(x, 0, 9), x), I32),
    (lambda x, f: jnp.clip(x, -9, 9) // 4, (-3, 2)),
    (lambda x, f: jax.lax.rem(jnp.clip(x, -9, 9), 4), (-3, 3)),
    # of loops: a ring, what scan carries, and an index beside the counter of the condition
    (lambda x, f: jax.lax.fori_loop(0, 7, lambda i, at: jax.lax.rem(at + 1, 4), 0), (0, 3)),
    (lambda x, f: jax.lax.scan(lambda at, _: (jnp.minimum(at + 1, 9), at), 0, None, length=20)[0], (0, 9)),
    (lambda x, f: jax.lax.fori_loop(0, 7, lambda i, at: i, 0), (0, 6)),
    (lambda x, f: jax.lax.fori_loop(0, 7, lambda i, at: at + x[0, 0], 0), I32),
]
VECTORS = [
    # running sums
    (lambda x, m: jnp.cumsum(m), (0, 6)),
    (lambda x, m: jnp.cumsum(jnp.clip(x, -1, 2)), (-6, 12)),
    (lambda x, m: jnp.cumsum(jnp.clip(x, 2, 3))[2:], (6, 18)),
    (lambda x, m: jax.lax.cumsum(jnp.clip(x, 2, 3), reverse=True)[2:], (2, 12)),
    (lambda x, m: jnp.cumsum(jnp.clip(x, 0, 2**30)), I32),
    (lambda x, m: jnp.cumsum(jnp.broadcast_to(jnp.clip(x, 0, 1), (3, N)), axis=0), (0, 3)),
    # what scatters write
    (lambda x, m: at(9, x, 7, "set"), (0, 7)),
    (lambda x, m: at(9, x, jnp.clip(x, 1, 3), "max"), (0, 3)),
    (lambda x, m: at(9, x, 1), (0, 6)),
    (lambda x, m: at(9, x, jnp.clip(x, -2, 1)), (-12, 6)),
    (lambda x, m: at(9, x, x), I32),
    (lambda x, m: at(9, x, jnp.clip(x, 0, 2**30)), I32),
    (lambda x, m: at(9, x, 3, "multiply"), I32),
    (lambda x, m: at(9, x, 0, "multiply"), (0, 0)),
    # with batching dims only the updates of one batch come to an element
    (lambda x, m: jax.vmap(lambda row: at(9, row, 1))(jnp.stack([x, x, x])), (0, N)),
    # counts, and running sums of them: no more than there are updates
    (lambda x, m: jnp.cumsum(at(9, x, 1)), (0, 6)),
    (lambda x, m: jnp.cumsum(at(9, x, jnp.clip(x, 0, 2))), (0, 12)),
    (lambda x, m: jnp.cumsum(at(9, x, jnp.clip(x, -1, 2))), (-54, 108)),
    (lambda x, m: jnp.nonzero(m, size=4)[0], (0, 5)),
    # all known
    (lambda x, m: at(4, np.array([1, 1, 3, 4, -5]), np.array([1, 2, 4, 8, 16])), (0, 4)),
    # a choice
    (lambda x, m: normalised(jnp.clip(x, -4, 3), None), (0, 3)),
    (lambda x, m: normalised(jnp.clip(x, -4, 3), m), (-4, 7)),
]


@pytest.mark.parametrize(
    ("function", "given", "expected"), [(f, (X, F), e) for f, e in MATRICES] + [(f, (X[0], M), e) for f, e in VECTORS]
)
def test_what_is_computed_from_a_bounded_index(function, given, expected):
    """What is computed of bounded integers, and what scatters write, is bounded, unless it may leave the type."""
    assert export(function, *given)[0] == expected


@pytest.mark.parametrize(
    ("function", "is_known"),
    [
        (lambda x: np.tril(np.ones((3, 3))) != 0, True),
        (lambda x: jnp.tril(jnp.ones((3, 3))) != 0, True),
        (lambda x: jnp.where(x > 0, 1.0, 0.0) != 0, False),
        (lambda x: jnp.tril(jnp.ones((3, 3))) + 1.0 != 0, False),  # no arithmetic is followed
        (lambda x: jnp.full(3, jnp.nan) == jnp.full(3, jnp.nan), True),
        (lambda x: jnp.stack(jnp.tril_indices(4)), True),  # found by counting a mask at run time
    ],
)
def test_what_is_made_of_float_constants(function, is_known):
    """A mask that is made of float constants is known, and what is counted in it; what is computed is not."""
    x = np.zeros(3, np.float32)
    graph = read(jax.jit(function).lower(x).as_text())
    found = IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0)))
    assert found.is_constant == is_known
    assert not is_known or np.array_equal(np.asarray(found.values, np.int64), np.asarray(function(x), np.int64))


def test_a_running_sum_of_64_bit_integers_is_ranged():
    """The sum of a vector leaves one bound, which NumPy gives as a Python integer where it has 64 bits."""
    lines = """%v = convert %m -> 6xi64; %z = constant 0 : i64
        %r = reduce_window(%v, %z) <WINDOWS> {add} -> 6xi64"""
    windows = "padding = dense<[[5, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 6>"
    assert analyse(module("%m: 6xi1", lines.replace("WINDOWS", windows))) == [(0, 6)]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        *(("maximum %a, %b", (0, 3)), ("xor %a, %b", (0, 3)), ("add %a, %b", (0, 18))),
        *(("add %a, %a", I32), ("subtract %a, %b", I32)),
    ],
)
def test_a_fold(op, expected):
    """A region that gives more than what it is given is not bounded."""
    fold = f"%r = reduce(%c, %z) <dimensions = array<i64: 0>> {{%a, %b: %s = {op}; return %s}} -> i32"
    assert analyse(module("%x: 6xi32", f"%c = clamp 0, %x, 3; %z = constant 0 : i32; {fold}")) == [expected]
