"""Elements along positions: what is claimed of random programs holds when they run, wrap-around included."""

import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.facts.distinct import axis_facts as facts
from hlo_lower.facts.distinct.axis_facts import AxisFacts, Entries, Monotonicity, of_bounds, of_form
from hlo_lower.facts.distinct.distinctness import Distinctness
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

N = 6


def along(text, axes=(0,)):
    """What is known of the result of a module's main along dims."""
    graph = read(text)
    intervals = IndexAnalysis(graph)
    value = graph.main.body.terminator.operand(0)
    positions = [Position(d, n) for d, n in enumerate(value.static_shape)]
    place = tuple(Linear(0, {p: 1}) if p.size > 1 else Linear(0) for p in positions)
    analysis = Distinctness(AffineAnalysis(intervals))
    return analysis.of(Entries(Site(value), place, tuple(positions[d] for d in axes)))


def violated(found, row):
    """Which claim does not hold for a row of numbers, or ""."""
    alone = sorted(x for x in row if not any(low <= x <= high for low, high in found.repeats))
    steps = [b - a for a, b in itertools.pairwise(row)]
    if found.gap and any(b - a < found.gap for a, b in itertools.pairwise(alone)):
        return "gap"
    if found.covers and sorted(row) != list(range(len(row))):
        return "covers"
    if steps and found.order and min(steps) < (found.order is Monotonicity.INCREASING):
        return "order"
    return ""


def program(choose, dtype, depth, shape):
    """A random function of two tensors, a scalar and a mask, in JAX; shape is its result's."""

    def scalar(value):
        return np.asarray(value).astype(dtype)[()]

    def iota():
        return jax.lax.broadcasted_iota(dtype, shape, last)

    last = len(shape) - 1
    if depth == 0:
        leaf, argument = choose(["data", "iota", "argsort", "reversed", "constant"]), choose([0, 1])
        constant = np.array([choose(range(7)) for _ in range(shape[-1])], dtype)
        return {
            "data": lambda e: e[argument],
            "iota": lambda e: iota(),
            "argsort": lambda e: jnp.argsort(e[argument], axis=last).astype(dtype),
            "reversed": lambda e: iota()[..., ::-1],
            "constant": lambda e: jnp.asarray(np.broadcast_to(constant, shape)),
        }[leaf]
    a, b = (program(choose, dtype, depth - 1, shape) for _ in range(2))
    numbers = [-7, -3, -1, 0, 1, 2, 3, 5, 6, 8, 40, 100, 127]
    c, modulus = scalar(choose(numbers)), scalar(choose([1, 2, 3, 6, 7, 100]))
    low, high = sorted(scalar(choose(numbers)) for _ in range(2))
    steps = {
        "plus number": lambda e: a(e) + c,
        "plus scalar": lambda e: a(e) + e[2],
        "minus": lambda e: c - a(e),
        "times": lambda e: a(e) * c,
        "negated": lambda e: -a(e),
        "clipped": lambda e: jnp.clip(a(e), low, high),
        "minimum": lambda e: jnp.minimum(a(e), c),
        "modulo": lambda e: a(e) % modulus,
        "remainder": lambda e: jax.lax.rem(a(e), modulus),
        "divided": lambda e: a(e) // modulus,
        "normalised": lambda e: jnp.where(a(e) < 0, a(e) + modulus, a(e)),
        "dropped": lambda e: jnp.where(e[3], a(e), c),
        "either": lambda e: jnp.where(e[3], a(e), b(e)),
        "sums": lambda e: jnp.cumsum(jnp.clip(a(e), scalar(1), scalar(3)), axis=last, dtype=dtype),
        "sorted": lambda e: jnp.sort(a(e), axis=last),
        "argsort": lambda e: jnp.argsort(a(e), axis=last).astype(dtype),
        "taken": lambda e: jnp.take_along_axis(a(e), b(e).astype(jnp.int32), axis=last),
        "reversed": lambda e: a(e)[..., ::-1],
        "rolled": lambda e: jnp.roll(a(e), 2, axis=last),
        "sum": lambda e: a(e) + b(e),
        "difference": lambda e: a(e) - b(e),
        "through ui8": lambda e: a(e).astype(jnp.uint8).astype(dtype),
        "through i32": lambda e: a(e).astype(jnp.int32).astype(dtype),
    }
    if last == 0:
        steps["scattered"] = lambda e: jnp.zeros(shape, dtype).at[b(e)].set(a(e), mode="drop")
    return steps[choose(list(steps))]


def values(dtype, shape, state, kind):
    """Numbers that are anything, small, equal or extreme."""
    info = np.iinfo(dtype)
    if kind == 3:
        extreme = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 5]
        return np.asarray(state.choice(extreme, shape)).astype(dtype)
    low, high = ((info.min, info.max + 1), (max(info.min, -4), 8), (0, 3))[kind]
    return np.asarray(state.randint(low, high, shape, dtype=np.int64)).astype(dtype)


@pytest.mark.few(10)
@pytest.mark.parametrize("seed", range(40))
def test_claims_hold_when_the_program_runs(seed):
    """Claims of a random program's result hold for every input, and its elements lie in their intervals."""
    draw = random.Random(seed)
    dtype = np.dtype(draw.choice(["int8", "int8", "uint8", "int32"]))
    shape = draw.choice([(N,), (N,), (3, 4)])
    function = program(draw.choice, dtype, draw.choice([1, 2, 3]), shape)
    given = [jax.ShapeDtypeStruct(s, d) for s, d in ((shape, dtype), (shape, dtype), ((), dtype), (shape, np.bool_))]
    lowered = jax.jit(lambda *e: function(e)).lower(*given)
    axes = [(0,)] if len(shape) == 1 else [(0,), (1,), (0, 1), (1, 0)]
    claims = [(dims, along(lowered.as_text(), dims)) for dims in axes]
    graph = read(lowered.as_text())
    low, high = IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0))).full()
    run, state = lowered.compile(), np.random.RandomState(seed)
    for kind in (0, 1, 2, 3) * 2:
        result = np.asarray(run(*(values(dtype, s, state, kind) for s in (shape, shape, ())), state.rand(*shape) < 0.5))
        assert np.all(low <= result)
        assert np.all(result <= high)
        for dims, found in claims:
            others = [d for d in range(len(shape)) if d not in dims]
            rows = result.transpose((*others, *dims)).reshape(-1, int(np.prod([shape[d] for d in dims])))
            assert all(violated(found, [int(x) for x in row]) == "" for row in rows)


def short(found):
    """(gap, repeats, covers, order)."""
    return found.gap, found.repeats, found.covers, found.order.name


FROM = Monotonicity.UNKNOWN.name


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: jnp.arange(N, dtype=jnp.int8) + x[0], (1, (), False, FROM)),  # it may wrap around
        (lambda x, y: jnp.arange(N, dtype=jnp.int8) + jnp.clip(x[0], 0, 3), (1, (), False, "INCREASING")),
        (lambda x, y: jnp.arange(N, dtype=jnp.int8) * np.int8(50) + x[0], (6, (), False, FROM)),  # 256 - 250
        (lambda x, y: jnp.arange(N, dtype=jnp.int8) * np.int8(52) + x[0], (0, (), False, FROM)),  # it comes round
        (lambda x, y: jnp.argsort(x).astype(jnp.int8) * np.int8(20), (20, (), False, FROM)),
        (lambda x, y: jnp.argsort(x).astype(jnp.int8) * np.int8(64), (0, (), False, FROM)),  # 256 is 0
        (lambda x, y: jnp.argsort(x).astype(jnp.int8) + y[0], (1, (), False, FROM)),
        (lambda x, y: np.int8(5) - jnp.argsort(x).astype(jnp.int8), (1, (), True, FROM)),
        (lambda x, y: jnp.sort(x), (0, (), False, "NON_DECREASING")),
        (lambda x, y: jnp.sort(x) + np.int8(1), (0, (), False, FROM)),  # 127 becomes -128
        (lambda x, y: jnp.sort(jnp.argsort(x)), (1, (), True, "INCREASING")),
        (lambda x, y: jnp.cumsum(jnp.clip(x, 2, 9), dtype=jnp.int8), (2, (), False, "INCREASING")),
        (lambda x, y: jnp.cumsum(jnp.clip(x, 2, 22), dtype=jnp.int8), (0, (), False, FROM)),  # 6 * 22 is too much
        (lambda x, y: jnp.minimum(jnp.argsort(x), 4), (1, ((4, 4),), False, FROM)),
        (lambda x, y: jnp.where(y > 0, jnp.argsort(x), 9), (1, ((9, 9),), False, FROM)),
        (lambda x, y: jnp.where(y > 0, jnp.argsort(x), y), (1, ((-128, 127),), False, FROM)),
        (lambda x, y: x, (0, (), False, FROM)),
    ],
)  # fmt: skip
def test_what_is_known(function, expected):
    """Distances, what may repeat, and order: exact where nothing can wrap around, else only what wrapping leaves."""
    vector = np.zeros(N, np.int8)
    assert short(along(jax.jit(function).lower(vector, vector).as_text())) == expected


def test_facts_are_joined():
    """Two facts of the same elements are both true; of one of several tensors only what all of them share is."""
    perm, dropped, ascending = AxisFacts(1, (), True), AxisFacts(5, ((8, 8),)), AxisFacts(order=Monotonicity(1))
    assert short(facts.best(perm, ascending)) == (1, (), True, "INCREASING")
    assert short(facts.best(dropped, AxisFacts(3))) == (3, (), False, FROM)
    assert short(facts.one_of([perm, dropped])) == (1, ((8, 8),), False, FROM)
    assert facts.one_of([]) == facts.UNKNOWN


def test_digits_of_forms():
    """Strides are digits if each is longer than the reach of the shorter ones; what wraps around comes nearer."""
    p, q = Position(0, 3), Position(1, 4)
    for constant, first, second, expected in (
        (0, 4, 1, (1, (), True, "INCREASING")),
        (0, 1, 3, (1, (), True, FROM)),
        (5, 9, 2, (2, (), False, "INCREASING")),
        (0, 3, 1, (0, (), False, "NON_DECREASING")),
        (0, 2, 1, (0, (), False, FROM)),
    ):
        assert short(of_form(Linear(constant, {p: first, q: second}), (p, q), is_exact=True)) == expected
    assert of_form(Linear(0, {p: 4}), (p, q), is_exact=True).gap == 0
    assert of_form(Linear(0, {p: 127}, width=8), (p,), is_exact=False).gap == 2


def test_bounds_of_single_elements():
    """Ranges that do not meet keep elements apart, in every case, whatever order they are in."""
    low = np.array([[0, 20, 10], [5, 9, 7]])
    assert short(of_bounds(low, low)) == (2, (), False, FROM)
    assert short(of_bounds(low, low + 1)) == (1, (), False, FROM)
    assert of_bounds(low, low + 2).gap == 0
    assert short(of_bounds(np.array([[2, 0, 1]]), np.array([[2, 0, 1]]))) == (1, (), True, FROM)
    assert of_bounds(low[:, :1], low[:, :1]) == facts.ONE
