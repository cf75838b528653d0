"""Ranges of running sums, of what scatters write, of known floats, and of choices in functions of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
N = 6
X, M = np.zeros(N, np.int32), np.zeros(N, np.bool_)


def told(function, *given):
    """The interval of the first result of a function."""
    graph = read(jax.jit(function).lower(*given).as_text())
    return IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0)))


def at(size, rows, updates, how="add", **kwargs):
    """A scatter of points into zeros."""
    return getattr(jnp.zeros(size, jnp.int32).at[rows], how)(updates, mode="drop", **kwargs)


def normalised(x, mask):
    """A negative index made positive, or whatever a mask says."""
    return jnp.where(x < 0 if mask is None else mask, x + 4, x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # running sums
        (lambda x, m: jnp.cumsum(m), (0, 6)),
        (lambda x, m: jnp.cumsum(jnp.clip(x, -1, 2)), (-6, 12)),
        (lambda x, m: jnp.cumsum(jnp.clip(x, 2, 3))[2:], (6, 18)),
        (lambda x, m: jax.lax.cumsum(jnp.clip(x, 2, 3), reverse=True)[2:], (2, 12)),
        (lambda x, m: jnp.cumsum(jnp.clip(x, 0, 2**30)), I32),
        (lambda x, m: jnp.cumsum(x), I32),
        (lambda x, m: jnp.cumsum(jnp.broadcast_to(jnp.clip(x, 0, 1), (3, N)), axis=0), (0, 3)),
        # what scatters write
        (lambda x, m: at(9, x, 7, "set"), (0, 7)),
        (lambda x, m: at(9, x, -7, "min"), (-7, 0)),
        (lambda x, m: at(9, x, jnp.clip(x, 1, 3), "max"), (0, 3)),
        (lambda x, m: at(9, x, 1), (0, 6)),
        (lambda x, m: at(9, x, jnp.clip(x, -2, 1)), (-12, 6)),
        (lambda x, m: at(9, x, jnp.clip(x, 0, 2**30)), I32),
        (lambda x, m: at(9, x, x), I32),
        (lambda x, m: at(9, x, 3, "multiply"), I32),
        (lambda x, m: at(9, x, 0, "multiply"), (0, 0)),
        # counts, and running sums of them: no more than there are updates
        (lambda x, m: jnp.cumsum(at(9, x, 1)), (0, 6)),
        (lambda x, m: jnp.cumsum(at(9, x, jnp.clip(x, 0, 2))), (0, 12)),
        (lambda x, m: jnp.cumsum(at(9, x, jnp.clip(x, -1, 2))), (-54, 108)),
        (lambda x, m: jnp.nonzero(m, size=4)[0], (0, 5)),
        # all known
        (lambda x, m: at(4, np.array([1, 1, 3, 4, -5]), np.array([1, 2, 4, 8, 16])), (0, 4)),
        (lambda x, m: at(4, np.array([1, 1, 3]), np.array([5, 2, 4]), "set")[1], (2, 2)),
        (lambda x, m: jnp.cumsum(jnp.arange(N)), (0, 15)),
        # a choice in a function of its own
        (lambda x, m: normalised(jnp.clip(x, -4, 3), None), (0, 3)),
        (lambda x, m: normalised(jnp.clip(x, -4, 3), m), (-4, 7)),
    ],
)  # fmt: skip
def test_ranges(function, expected):
    """Sums are bounded by what they add up to, scatters by what they write; what may leave the type is anything."""
    assert told(function, X, M).hull() == expected


def test_batches_count_for_themselves():
    """With batching dims only the updates of one batch come to an element."""
    counts = jax.vmap(lambda x: at(9, x, 1))
    assert told(counts, np.zeros((3, N), np.int32)).hull() == (0, N)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: np.tril(np.ones((3, 3))) != 0, True),
        (lambda x: jnp.tril(jnp.ones((3, 3))) != 0, True),
        (lambda x: jnp.where(x > 0, 1.0, 0.0) != 0, False),
        (lambda x: jnp.tril(jnp.ones((3, 3))) + 1.0 != 0, False),  # no arithmetic is followed
        (lambda x: jnp.full(3, jnp.nan) == jnp.full(3, jnp.nan), True),
        (lambda x: x == x, False),
    ],
)
def test_comparisons_of_known_floats(function, expected):
    """A mask that is made of float constants is known, and what is computed is not."""
    given = np.zeros(3, np.float32)
    found = told(function, given)
    assert found.is_constant == expected
    assert not expected or np.array_equal(np.asarray(found.values, bool), np.asarray(function(given)))


def test_triangle_indices_are_constants():
    """The indices of a triangle, found by counting a mask at run time, are known."""
    found = told(lambda: jnp.stack(jnp.tril_indices(4)))
    assert found.is_constant
    assert np.array_equal(np.asarray(found.values, np.int64), np.stack(np.tril_indices(4)))


def test_a_running_sum_of_64_bit_integers_is_ranged():
    """The sum of a vector leaves one bound, which NumPy gives as a Python integer where it has 64 bits."""
    text = """func.func public @main(%m: tensor<6xi1>) -> tensor<6xi64> {
  %v = stablehlo.convert %m : (tensor<6xi1>) -> tensor<6xi64>
  %z = stablehlo.constant dense<0> : tensor<i64>
  %r = "stablehlo.reduce_window"(%v, %z) <{padding = dense<[[5, 0]]> : tensor<1x2xi64>,
    window_dimensions = array<i64: 6>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %s = stablehlo.add %a, %b : tensor<i64>
    stablehlo.return %s : tensor<i64>
  }) : (tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
  return %r : tensor<6xi64>
}
"""
    graph = read(text)
    assert IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0))).hull() == (0, 6)
