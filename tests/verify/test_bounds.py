"""Bounds: bit for bit or within what is stated, floats moved in the last place, and each element's own rounding."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import function, module

from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops.names import REDUCE_PRECISION, TANH
from hlo_lower.verify.bounds import rounding_bounds
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond, nan_share, overflow_taken
from hlo_lower.verify.bounds.perturbed_module import (
    MOST,
    SHORT,
    CannotDisturbError,
    disturb_module,
    function_text,
    most_of,
)
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.run import Executable


def f32(*values: float) -> np.ndarray:
    """An array of float32."""
    return np.asarray(values, np.float32)


def beyond(expected, actual, bound):
    """The first difference of two results beyond a bound for each element."""
    limit = np.asarray(bound, np.float64)
    return first_difference_beyond([expected], [actual], [np.broadcast_to(limit, expected.shape)])


QUIET, SIGNALLING, NEGATIVE = (
    np.asarray([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FA00001, 0xFFC00000)
)
INFINITE, LARGE = f32(np.inf), f32(3e38)
BITS, ANYTHING = "bit for bit", np.inf


@pytest.mark.parametrize(
    ("expected", "actual", "bound", "is_within"),
    [
        # zeros of another sign differ bit for bit, and are within any bound
        *((np.zeros(2, t), -np.zeros(2, t), BITS, False) for t in (np.float16, ml_dtypes.bfloat16, np.complex64)),
        (np.zeros(2, np.complex64), -np.zeros(2, np.complex64), 0, True),
        # the payload and the sign of a NaN do not count, a number in its place does
        *((QUIET, other, bound, True) for other in (QUIET, SIGNALLING, NEGATIVE) for bound in (BITS, 0)),
        *((NEGATIVE, f32(1), bound, False) for bound in (BITS, 1e30)),
        # integers and booleans are within the bound that is given, however large they are
        *((np.asarray([0, 1]).astype(t), np.zeros(2, t), BITS, False) for t in (np.bool_, ml_dtypes.int4)),
        (np.asarray([0, 1], np.uint64), np.asarray([0, 0], np.uint64), (1, 0), False),
        (np.asarray([0, 1], np.uint64), np.asarray([0, 0], np.uint64), (0, 1), True),
        (np.asarray([1 << 60]), np.asarray([(1 << 60) + 1]), 0, False),
        # what one element may be off another may not; of complex numbers the distance counts
        (f32(-1e30, 1, 2), f32(-1.0001e30, 1.5, 2.5), (1e27, 1, 1), True),
        (f32(-1e30, 1, 2), f32(-1.0001e30, 1.5, 2.5), (1e27, 1, 0.25), False),
        *((np.complex64([1 + 1j]), np.complex64([1 + 1.5j]), bound, bound == 0.6) for bound in (0.6, 0.4)),
        # an infinity is within no finite bound of anything but itself
        (INFINITE, INFINITE.copy(), 1e300, True),
        *((INFINITE, x, bound, bound == ANYTHING) for x in (LARGE, -INFINITE, QUIET) for bound in (1e300, ANYTHING)),
        (LARGE, INFINITE, 1e300, False),
        # results of another shape or element type differ, whatever the bound
        *((np.zeros(2, np.int8), np.zeros(2, np.uint8), bound, False) for bound in (BITS, ANYTHING)),
        *((np.zeros(2, np.float32), np.zeros((2, 1), np.float32), bound, False) for bound in (BITS, ANYTHING)),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), BITS, True),
    ],
)  # fmt: skip
def test_what_is_within_a_bound(expected, actual, bound, is_within):
    """Bit for bit, or by at most so much for each element."""
    found = first_difference([expected], [actual]) if bound is BITS else beyond(expected, actual, bound)
    assert (found is None) == is_within


def test_the_first_difference_is_told_with_both_values_and_the_count():
    """The next number up differs; the message names the bound that it is beyond."""
    expected = np.asarray([[1, 2], [3, 4]], np.float32)
    actual = expected.copy()
    actual[1] = np.nextafter(actual[1], np.float32(np.inf))
    found = first_difference([f32(1), expected], [f32(1), actual])
    assert str(found) == "result 1 at [1, 0]: expected 3.0, got 3.0000002 (2 elements differ, bit for bit)"
    what = "beyond 0.25, the bound of this element's own rounding"
    told = f"result 0 at [1]: expected 2.0, got 2.5 (1 elements differ, {what})"
    assert str(beyond(f32(1, 2), f32(1.5, 2.5), (1, 0.25))) == told
    assert first_difference([np.asarray(1)], [np.asarray(2)]).index == ()
    assert first_difference([np.zeros(2, np.int8)], [np.zeros(2, np.uint8)]).what == "types"


def test_overflow_epsilons_and_shares_of_nan():
    """Where one of two results is not a number the expected one is taken; what is no float has no NaN."""
    expected = [f32(np.inf, 0.0, 1.0), np.asarray([1])]
    floats, integers = overflow_taken(expected, [f32(np.nan, np.nan, 2.0), np.asarray([2])])
    assert np.array_equal(f32(np.inf, 0.0, 2.0), floats)
    assert np.array_equal([2], integers)
    epsilons = {np.float32: 2**-23, ml_dtypes.bfloat16: 2**-7, np.complex64: 2**-23}
    assert {dtype: element_type_of(np.dtype(dtype)).epsilon for dtype in epsilons} == epsilons
    assert (nan_share(f32(1, np.nan)), nan_share(np.asarray([1])), nan_share(f32())) == (0.5, 0, 0)


DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
KEPT = [0.0, -0.0, 1.0, 0.5, -2.0, 6.0, np.inf, -np.inf, np.nan]
"""Zeros, short numbers, and what is not a number."""


def moved(element, values, salt, most, tail=None):
    """Values moved by the function of their type."""
    tail = (1 << SHORT[element]) - 1 if tail is None else tail
    kind = f"{len(values)}x{element}"
    body = f"%p = constant 7 : ui32; %t = constant {tail} : ui32; %r = call @f(%v, %s, %p, %m, %t) -> {kind}"
    text = module(f"%v: {kind}, %s: ui32, %m: ui32", body, "%r", function_text("f", [len(values)], element))
    [result] = Executable(text, "quick").run([np.asarray(values, DTYPES[element]), np.uint32(salt), np.uint32(most)])
    return result


@pytest.mark.parametrize("element", DTYPES)
def test_each_is_moved_by_at_most_so_many_units(element):
    """By -5 to 5 units; special and short numbers not at all; equal numbers alike, and otherwise under another salt."""
    info = ml_dtypes.finfo(DTYPES[element])
    ends = [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)]
    drawn = np.random.default_rng(0).standard_normal(500).astype(DTYPES[element])
    values = np.concatenate([np.asarray([*KEPT, *ends], DTYPES[element]), drawn, drawn])
    result = moved(element, values, 1, 5)
    first = len(KEPT) + len(ends)
    assert result[:first].tobytes() == values[:first].tobytes()
    steps = np.subtract(*(r[first:].view(f"u{r.itemsize}").astype(np.int64) for r in (result, values)))
    assert (int(steps.min()), int(steps.max())) == (-5, 5)
    np.testing.assert_array_equal(steps[:500], steps[500:])
    assert (moved(element, values, 2, 5)[first:] != result[first:]).mean() > 0.5
    assert MOST[element].plain >= 2


def test_short_numbers_are_moved_where_it_is_said():
    """1000.0 as the argument of a cosine is; zeros and what is not a number are not."""
    values = np.asarray([*KEPT, *[1000.0] * 3], np.float32)
    results = [moved("f32", values, salt, 5, (1 << 32) - 1) for salt in range(6)]
    assert any((r[-1] != 1000.0) and abs(r[-1] - 1000.0) < 1e-3 for r in results)
    assert all(r[[0, 1, 6, 7, 8]].tobytes() == values[[0, 1, 6, 7, 8]].tobytes() for r in results)


COMPOSITE = '%r = stablehlo.composite "my.twice" %a {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>'


def test_a_composite_is_disturbed_in_its_decomposition():
    """It becomes a call, so that what rounds within is moved; arguments keep their attributes."""
    own = function("private @f", "%a: 4xf32", "%r = exponential %a", "%r")
    after = disturb_module(module("%a: 4xf32 {jax.buffer_donor = true}", COMPOSITE, "%r", own))
    assert "composite" not in after
    assert "jax.buffer_donor" in after
    x = np.linspace(0.1, 2.3, 4, dtype=np.float32)
    results = [Executable(after, "quick").run([x, np.uint32(salt)])[0] for salt in range(4)]
    assert len({r.tobytes() for r in results}) > 1
    np.testing.assert_allclose(results[0], np.exp(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "rounds"),
    [
        ("%n = negate %a; %r = maximum %n, %a; %j = add %i, %i", False),
        ("%n = negate %a; %r = add %n, %a; %j = add %i, %i", True),
        # ops whose declarations say that they round nothing, whatever lists there are
        ("%r = chlo.next_after %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>", False),
        ("%r = set_dimension_size %a, %s, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>", False),
    ],
)
def test_what_does_not_round_is_not_disturbed(body, rounds):
    """A module that moves, compares, negates and adds integers has no disturbed version."""
    text = module("%a: 4xf32, %i: 4xi32, %s: i32", body, "%r, %j" if "%j" in body else "%r")
    assert (disturb_module(text) is not None) == rounds


def test_what_is_rounded_once_is_moved_as_a_sum_is():
    """By less than a function that every consumer approximates in its own way."""
    raw = mlir.parse_module(module("%a: 4xf32", "%r = reduce_precision %a, format = e5m10; %t = tanh %r", "%t"))
    found = (most_of(op, op.results[0].type, 1) for op in mlir.find_named(raw.operation, {REDUCE_PRECISION, TANH})[0])
    assert tuple(found) == (MOST["f32"].plain, MOST["f32"].function)


BAN = -1e30


def some(seed, shape, dtype=np.float32):
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Judged:
    """A function of JAX as the first version, run once: does a result pass in the place of its own?"""

    def __init__(self, function, *arguments):
        text = jax.jit(function).lower(*arguments).as_text()
        self.arguments = [np.asarray(a) for a in arguments]
        self.expected = Executable(text, "exact").run(self.arguments)
        self.bounds = OwnBounds(text)

    def passes(self, *actual):
        """Whether results are within the bounds."""
        fitting = [np.asarray(a).astype(e.dtype) for a, e in zip(actual, self.expected, strict=True)]
        return self.bounds.difference(self.expected, fitting, self.arguments) is None

    def check(self, right, wrong):
        """Of single results all that are right pass, and none of those that are wrong."""
        assert [k for k, actual in enumerate(right) if not self.passes(actual)] == []
        assert [k for k, actual in enumerate(wrong) if self.passes(actual)] == []


def changed(array, place, value):
    """The array with other values somewhere."""
    other = np.array(array)
    other[place] = value
    return other


def attention(q, k, v, mask):
    """One head; what is masked gets -1e30, or the least finite number of a narrow type."""
    low = max(BAN, float(jnp.finfo(q.dtype).min))
    scores = jnp.where(mask, q @ k.T / np.sqrt(q.shape[-1]).astype(q.dtype), jnp.asarray(low, q.dtype))
    return jax.nn.softmax(scores, axis=-1) @ v


def test_a_thousandth_is_wrong_in_f32():
    """x * 1.001 is beyond the bound of a product of matrices, an attention and a normalization."""
    x, w = some(0, (16, 64)), some(1, (64, 8))
    for judged in (
        Judged(lambda a, b: a @ b, x, w),
        Judged(attention, x, x, x, np.ones((16, 16), bool)),
        Judged(lambda a: (a - a.mean(-1, keepdims=True)) * jax.lax.rsqrt(a.var(-1, keepdims=True) + 1e-5), x),
    ):
        [expected] = judged.expected
        judged.check([expected * np.float32(1 + 2**-23)], [expected * np.float32(1.001)])


def test_huge_terms_that_cancel():
    """Where 1e8 and -1e8 cancel, an error of some units of 1e8 passes in that row, in the row beside it none does."""
    x = some(0, (2, 64))
    x[0, 3], x[0, 40] = 1e8, -1e8
    judged = Judged(lambda a: a.sum(axis=1), x)
    [expected] = judged.expected
    orders = (np.random.default_rng(seed).permutation(64) for seed in range(20))
    right = [np.add.accumulate(x[:, order], axis=1)[:, -1] for order in orders]
    judged.check(right, [changed(expected, 0, 1e6), changed(expected, 1, expected[1] + 0.01)])


def test_terms_near_the_end_of_f16_that_cancel():
    """They have digits of 32 there, and what is added first is lost; in f32, rounded once, it is not."""
    x, u = np.float16([-5.996]), np.float16([-63616, 63616])
    judged = Judged(lambda x, u: x.at[np.int32([0, 0])].add(u), x, u)
    judged.check([x, x * 0], [x + np.float16(2000)])


def test_nothing_is_disturbed_where_others_show_enough(monkeypatch):
    """What another level of optimization gives is part of the bound: within it no disturbed module is compiled, and
    beyond it one is asked."""
    x, made = some(3, (4, 64)), list[str]()
    judged = Judged(lambda a: a.sum(axis=1), x)
    monkeypatch.setattr(rounding_bounds, "disturb_module", lambda text: made.append(text) or disturb_module(text))
    [expected] = judged.expected
    others = [[expected * np.float32(1 + 2**-20)]]
    for actual, is_close, count in ((1 + 2**-19, True, 0), (1.01, False, 1)):
        found = judged.bounds.difference([expected], [expected * np.float32(actual)], [x], others)
        assert ((found is None), len(made)) == (is_close, count)


def test_what_is_swallowed_is_swallowed_everywhere():
    """1e8 + 1 is 1e8 on any machine, as is a mask of -1e30 with a score: nothing there is moved."""
    judged = Judged(lambda x: (x + 1e8) * jnp.float32(0.1), some(3, (3,)))
    [bound] = judged.bounds.of(judged.arguments, judged.expected)
    assert float(bound.max()) < 1e7 * 64 * 2**-23
    masked = Judged(lambda x: jnp.stack([x, x + jnp.float32(BAN)]), some(3, (3,)))
    masked.check(masked.expected, [changed(masked.expected[0], (1, 0), -1.0001e30)])


def test_narrow_arithmetic_on_the_way_is_seen():
    """A wide result has bf16's roundings where it went through bf16, and beside that f32's own."""

    def mixed(x):
        return x * 3 + x * x, ((x.astype(jnp.bfloat16) * 3) * x.astype(jnp.bfloat16)).astype(jnp.float32)

    judged = Judged(mixed, some(0, (64,)))
    wide, narrow = judged.expected
    assert judged.passes(wide, narrow * np.float32(1 + 2**-7))
    assert not judged.passes(wide * np.float32(1 + 2**-7), narrow)
    assert not judged.passes(wide, narrow * np.float32(1.25))


def test_integers_are_exact_but_where_rounding_flips_them():
    """The larger of two all but equal sums is either; of others it is the one, and a count stays exact."""
    x = some(0, (3, 32))
    y = x[:, ::-1] * np.float32(1)
    y[1] += 1

    def larger(a, b):
        sums = jnp.stack([jnp.sum(a * a, 1), jnp.sum(b * b, 1)], axis=1)
        return jnp.argmax(sums, axis=1).astype(jnp.int32), jnp.sum((a > 0).astype(jnp.int32), axis=1)

    judged = Judged(larger, x, y)
    winner, count = judged.expected
    assert judged.passes(changed(winner, 0, 1 - winner[0]), count)
    assert not judged.passes(changed(winner, 1, 1 - winner[1]), count)
    assert not judged.passes(winner, count + 1)


def test_what_is_no_number_stays_in_its_place():
    """NaN and infinities are where they are; one more, one less or another sign is a difference."""
    x = some(0, (8,))
    x[2], x[3], x[4] = np.nan, np.inf, -np.inf
    judged = Judged(lambda a: jnp.exp(a) * 2 - a, x)
    [expected] = judged.expected
    places = (2, 0), (3, 3e38), (3, -np.inf), (0, np.nan), (0, np.inf)
    judged.check([expected * np.float32(1 + 2**-22)], [changed(expected, *place) for place in places])


def test_salt_reaches_loops_branches_and_functions():
    """What is rounded within a while, a case and a called function is disturbed as what is around them."""

    def looped(x, k):
        big = jnp.float32(3e3)
        y = jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(c + big) + c, x)
        return jax.lax.switch(k, [lambda v: v * 2, lambda v: jnp.exp(v) / 3], jax.jit(lambda v: v / 7)(y))

    judged = Judged(looped, some(0, (16,)), np.int32(1))
    assert judged.bounds._disturbed is None  # nothing is compiled before it is needed
    assert not judged.passes(judged.expected[0] * 2)
    assert judged.bounds._disturbed is not None
    [bound] = judged.bounds.of(judged.arguments, judged.expected)
    assert 1e-4 < float(np.median(bound / np.abs(judged.expected[0]))) < 1e-1  # sin of a number with four decimals


def test_results_that_say_little_are_told():
    """Where rounding alone moves most of a result by more than itself, the notes say so."""
    big = np.full(64, 1e7, np.float32)
    judged = Judged(lambda a, b: (a + b) - b - a, 1 + np.abs(some(0, (64,))), big)
    assert judged.passes(judged.expected[0] * 1.5)
    assert judged.bounds.notes == ("result 0: rounding alone moves 100% of it by more than half of itself",)


def test_what_rounding_makes_infinite_is_undecided_and_told():
    """An element that is infinite in one disturbed run and not in another passes as anything, and is counted."""
    limits = rounding_bounds.bounds_from([[np.float32([np.inf, 1])], [np.float32([1, 1])]], [np.float32([1, 1])])
    assert (rounding_bounds.count_undecided(limits), bool(np.isinf(limits[0][1]))) == (1, False)


def test_without_a_disturbed_module_arguments_are_moved(monkeypatch):
    """Where the salt does not reach all of a module, its own runs on moved arguments bound it."""

    def unreachable(_):
        raise CannotDisturbError

    monkeypatch.setattr(rounding_bounds, "disturb_module", unreachable)
    judged = Judged(lambda a: (a * a).sum(axis=1), some(0, (4, 64)))
    [expected] = judged.expected
    judged.check([expected * np.float32(1 + 2**-22)], [expected * np.float32(1.001), changed(expected, 2, 0)])
