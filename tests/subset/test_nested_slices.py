"""Scatters into what is itself a slice, at starts and indices within and beyond every edge, against NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import hlo_lower as hl
from hlo_lower.verify.run import Executable

D, W = 24, 10
STARTS = [-(2**31), -1, 0, 3, D - W, D - W + 1, D - 1, D + 5, 2**31 - 1]
INDICES = [-(2**31), -W, -1, 0, 1, W - 3, W - 1, W, W + 3, 2**31 - 1]
X = np.arange(D, dtype=np.float32)


def sliced(x, s):
    """What the module reads; its start is clamped."""
    return lax.dynamic_slice_p.bind(x, s, slice_sizes=(min(W, x.size - 1),))


def gathered(x, s):
    """The same as a gather of one window."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(0,), collapsed_slice_dims=(), start_index_map=(0,))
    return lax.gather(x, s[None], numbers, (W,), mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def scattered(y, at, window, combine):
    """A scatter of windows of ones and twos."""
    numbers = lax.ScatterDimensionNumbers((1,) if window > 1 else (), () if window > 1 else (0,), (0,))
    updates = 100 + jnp.arange(at.size * window, dtype=y.dtype).reshape((at.size, window)[: 1 + (window > 1)])
    put = lax.scatter_add if combine == "add" else lax.scatter
    return put(y, at[:, None], updates, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


def expected(s, at, window, combine):
    """What is right, in Python's integers."""
    begin = min(max(s, 0), D - W)
    found = X[begin : begin + W].copy()
    for number, place in enumerate(at):
        if 0 <= place <= W - window:
            update = 100 + np.arange(number * window, (number + 1) * window)
            found[place : place + window] = update + (found[place : place + window] if combine == "add" else 0)
    return found


def wrapping(numbers):
    """Numbers as i32 holds them."""
    return np.asarray(numbers, np.int64).astype(np.int32).tolist()


RUN = np.arange(4, dtype=np.int32)
PUT = {  # the positions of a start, for JAX and in Python's integers, and the extent of windows
    "one window, dropped as a whole": (lambda i: i.reshape(1), lambda i: [i], 3),
    "as many at one place, of a start that is computed": (lambda i: jnp.broadcast_to(i, (16,)), lambda i: [i] * 16, 1),
    "some elements": (lambda i: i + jnp.array([0, 40, -5], jnp.int32), lambda i: wrapping([i, i + 40, i - 5]), 1),
    "a run of rows, each index normalized by itself": (
        lambda i: jnp.where(i + RUN < 0, i + RUN + W, i + RUN),
        lambda i: [wrapping([k + W])[0] if k < 0 else k for k in wrapping(np.arange(4) + i)],
        1,
    ),
}


def called(x, s):
    """The same in a function, and transposed."""
    return jax.jit(lambda x, s: sliced(x, s)[None].T)(x, s)[:, 0]


TARGETS = ("stablehlo", "litert", "coreml")
ONE, *_, RUNS = PUT
CASES = [(put, "add", sliced, target) for put in PUT for target in TARGETS]
CASES += [(ONE, "assign", gathered, "stablehlo"), (RUNS, "assign", called, "coreml")]
ALL = [
    pytest.param((put, how, read, target), marks=pytest.mark.sweep)
    for put, how, read, target in itertools.product(PUT, ("assign", "add"), (sliced, gathered, called), TARGETS)
    if (put, how, read, target) not in CASES
]


@pytest.mark.parametrize("case", [*CASES, *ALL], ids=lambda case: "-".join(getattr(c, "__name__", c) for c in case))
def test_a_scatter_into_a_slice_is_right_at_every_edge(case):
    """XLA makes one slice of the module's and of the one that a rule reads by, and no start is lost."""
    put, combine, read, target = case
    at, places, window = PUT[put]
    program = jax.jit(lambda x, s, i: scattered(read(x, s), at(i), window, combine))
    given = program.lower(X, np.int32(0), np.int32(0)).as_text()
    lowered = Executable(hl.lower(given, target=target).stablehlo, "default")
    for s, i in itertools.product(STARTS, INDICES):
        right = expected(s, places(i), window, combine)
        assert lowered.run([X, np.int32(s), np.int32(i)])[0].tolist() == right.tolist(), (s, i)


def test_slices_that_no_rule_built_are_left():
    """A module's own slice of a slice stays as it is, and so does one of which a single row is read."""
    text = jax.jit(lambda x, s, i: (sliced(sliced(x, s), i), x[None].at[0, i].add(1.0))).lower(X, 0, 0).as_text()
    [*given] = [line.split("=")[1] for line in text.splitlines() if "stablehlo.dynamic_slice" in line]
    lowered = hl.lower(text).stablehlo
    assert all(line in lowered for line in given)
