"""Bounds: bit for bit or within what is stated, floats moved in the last place, and each element's own rounding."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ops.names import REDUCE_PRECISION, TANH
from hlo_lower.verify.bounds import rounding_bounds
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond, nan_share, overflow_taken
from hlo_lower.verify.bounds.perturbed_module import MOST, SHORT, CannotDisturbError, disturbed, function_text, most_of
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.run import Executable


def f32(*values: float) -> np.ndarray:
    """An array of float32."""
    return np.asarray(values, np.float32)


def beyond(expected, actual, *bound):
    """The first difference of two results beyond a bound for each element."""
    limit = np.asarray(bound, np.float64)
    return first_difference_beyond([expected], [actual], [np.broadcast_to(limit, expected.shape)])


QUIET, SIGNALLING, NEGATIVE = (
    np.asarray([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FA00001, 0xFFC00000)
)


def test_overflow_is_taken_and_numbers_are_not():
    """Where one of two results is NaN or infinite the expected one is taken; numbers stay what they are."""
    expected = [f32(np.inf, 0.0, 1.0), np.asarray([1])]
    floats, integers = overflow_taken(expected, [f32(np.nan, np.nan, 2.0), np.asarray([2])])
    assert np.array_equal(f32(np.inf, 0.0, 2.0), floats)
    assert np.array_equal([2], integers)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64])
def test_zeros_of_another_sign_differ(dtype):
    """+0 and -0 are not the same bit for bit, and are within any bound."""
    plus, minus = np.zeros(2, dtype), -np.zeros(2, dtype)
    found = first_difference([plus], [minus])
    assert (found.index, found.count, found.what) == ((0,), 2, "bit for bit")
    assert first_difference([minus], [minus.copy()]) is None
    assert beyond(plus, minus, 0) is None


@pytest.mark.parametrize("other", [QUIET, SIGNALLING, NEGATIVE])
def test_any_nan_equals_any_nan(other):
    """The payload and the sign of a NaN do not count, a number in its place does."""
    assert first_difference([QUIET], [other]) is None
    assert beyond(QUIET, other, 0) is None
    assert first_difference([other], [f32(1)]) is not None
    assert beyond(other, f32(1), 1e30) is not None


def test_one_bit_is_a_difference():
    """The next number up differs, and the first such place is named with both values and the count."""
    expected = np.asarray([[1, 2], [3, 4]], np.float32)
    actual = expected.copy()
    actual[1] = np.nextafter(actual[1], np.float32(np.inf))
    found = first_difference([f32(1), expected], [f32(1), actual])
    assert str(found) == "result 1 at [1, 0]: expected 3.0, got 3.0000002 (2 elements differ, bit for bit)"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (np.zeros(2, np.int32), np.zeros(2, np.int64)),
        (np.zeros(2, np.float32), np.zeros((2, 1), np.float32)),
        (np.zeros(2, np.int8), np.zeros(2, np.uint8)),
    ],
)
def test_another_type_is_a_difference(expected, actual):
    """Results of another shape or element type differ, equal values or not."""
    for found in (first_difference([expected], [actual]), beyond(expected, actual, np.inf)):
        assert found.what == "types"


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, ml_dtypes.int4])
def test_integers_have_the_bound_that_is_given(dtype):
    """Integers and booleans differ by one where the bound is 0, and are let through where it is 1."""
    a, b = np.asarray([0, 1]).astype(dtype), np.asarray([0, 0]).astype(dtype)
    assert first_difference([a], [a.copy()]) is None
    assert first_difference([a], [b]) is not None
    assert [beyond(a, b, *bound) is None for bound in ((0, 0), (1, 0), (0, 1))] == [False, False, True]


def test_large_integers_are_told_apart():
    """2**60 and 2**60 + 1 are the same in f64 and differ."""
    found = beyond(np.asarray([1 << 60, 1 << 60]), np.asarray([1 << 60, (1 << 60) + 1]), 0)
    assert (found.index, found.count) == ((1,), 1)


def test_each_element_has_its_own_bound():
    """What one element may be off another may not; the message names the first beyond its bound, and counts them."""
    expected, actual = f32(-1e30, 1, 2), f32(-1.0001e30, 1.5, 2.5)
    assert beyond(expected, actual, 1e27, 1, 1) is None
    what = "beyond 0.25, the bound of this element's own rounding"
    told = f"result 0 at [2]: expected 2.0, got 2.5 (1 elements differ, {what})"
    assert str(beyond(expected, actual, 1e27, 1, 0.25)) == told
    complex_one = np.asarray([1 + 1j], np.complex64)
    assert beyond(complex_one, complex_one + 0.5j, 0.6) is None
    assert beyond(complex_one, complex_one + 0.5j, 0.4) is not None


@pytest.mark.parametrize("bound", [1.0, 1e300])
def test_infinity_is_within_no_finite_bound(bound):
    """An infinity is equal to itself, and to nothing finite, nor to the other one, unless anything is allowed."""
    infinite = f32(np.inf)
    assert beyond(infinite, infinite.copy(), bound) is None
    for other in (f32(3e38), f32(-np.inf), f32(np.nan)):
        assert beyond(infinite, other, bound) is not None
        assert beyond(other, infinite, bound) is not None
        assert beyond(infinite, other, np.inf) is None


def test_a_difference_is_where_it_is():
    """Empty results are equal, and a scalar has an empty index."""
    assert first_difference([np.zeros((0, 3), np.float32)], [np.zeros((0, 3), np.float32)]) is None
    assert first_difference([np.asarray(1)], [np.asarray(2)]).index == ()


def test_machine_epsilons_and_shares_of_nan():
    """Epsilon is known for every float type; what is no float has no NaN."""
    epsilons = {np.float32: 2**-23, ml_dtypes.bfloat16: 2**-7, np.complex64: 2**-23}
    assert {dtype: element_type_of(np.dtype(dtype)).epsilon for dtype in epsilons} == epsilons
    assert (nan_share(f32(1, np.nan)), nan_share(np.asarray([1])), nan_share(f32())) == (0.5, 0, 0)


DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
KEPT = [0.0, -0.0, 1.0, 0.5, -2.0, 6.0, np.inf, -np.inf, np.nan]
"""Zeros, short numbers, and what is no number."""


def moved(element, values, salt, most, tail=None):
    """Values moved by the function of their type."""
    tail = (1 << SHORT[element]) - 1 if tail is None else tail
    kind = f"{len(values)}x{element}"
    body = f"%p = constant 7 : ui32; %t = constant {tail} : ui32; %r = call @f(%v, %s, %p, %m, %t) -> {kind}"
    text = module(f"%v: {kind}, %s: ui32, %m: ui32", body, "%r", function_text("f", [len(values)], element))
    [result] = Executable(text, "quick").run([np.asarray(values, DTYPES[element]), np.uint32(salt), np.uint32(most)])
    return result


def places(array):
    """Where each float stands in the order of its type's magnitudes."""
    return array.view(f"u{array.dtype.itemsize}").astype(np.int64)


@pytest.mark.parametrize("element", DTYPES)
def test_each_is_moved_by_at_most_so_many_units(element):
    """By -5 to 5 units, both ends among them; zeros, short numbers, infinities, NaN and the ends of the range not at
    all; equal numbers alike, and otherwise under another salt."""
    info = ml_dtypes.finfo(DTYPES[element])
    ends = [float(info.max), float(info.smallest_normal), float(info.smallest_subnormal)]
    drawn = np.random.default_rng(0).standard_normal(500).astype(DTYPES[element])
    values = np.concatenate([np.asarray([*KEPT, *ends], DTYPES[element]), drawn, drawn])
    result = moved(element, values, 1, 5)
    first = len(KEPT) + len(ends)
    assert result[:first].tobytes() == values[:first].tobytes()
    steps = places(result[first:]) - places(values[first:])
    assert (int(steps.min()), int(steps.max())) == (-5, 5)
    np.testing.assert_array_equal(steps[:500], steps[500:])
    assert (moved(element, values, 2, 5)[first:] != result[first:]).mean() > 0.5
    assert MOST[element].plain >= 2


def test_short_numbers_are_moved_where_it_is_said():
    """1000.0 as the argument of a cosine is; zeros and what is no number are not."""
    values = np.asarray([*KEPT, *[1000.0] * 3], np.float32)
    results = [moved("f32", values, salt, 5, (1 << 32) - 1) for salt in range(6)]
    assert any((r[-1] != 1000.0) and abs(r[-1] - 1000.0) < 1e-3 for r in results)
    assert all(r[[0, 1, 6, 7, 8]].tobytes() == values[[0, 1, 6, 7, 8]].tobytes() for r in results)


COMPOSITE = '%r = stablehlo.composite "my.twice" %a {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>'


def test_a_composite_is_disturbed_in_its_decomposition():
    """It becomes a call, so that what rounds within is moved; arguments keep their attributes."""
    own = function("private @f", "%a: 4xf32", "%r = exponential %a", "%r")
    after = disturbed(module("%a: 4xf32 {jax.buffer_donor = true}", COMPOSITE, "%r", own))
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
    assert (disturbed(text) is not None) == rounds


def test_what_is_rounded_once_is_moved_as_a_sum_is():
    """By less than a function that every consumer approximates in its own way."""
    raw = mlir.parse_module(module("%a: 4xf32", "%r = reduce_precision %a, format = e5m10; %t = tanh %r", "%t"))
    found = (most_of(op, op.results[0].type, 1) for op in mlir.named(raw.operation, {REDUCE_PRECISION, TANH})[0])
    assert tuple(found) == (MOST["f32"].plain, MOST["f32"].function)


FLOATS = [np.float32, ml_dtypes.bfloat16, np.float16]
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


def banned_logits(x, w, banned):
    """Logits, some of them banned: the result holds -1e30, or the least finite number in f16."""
    low = max(BAN, float(jnp.finfo(x.dtype).min))
    return (x @ w).at[banned].set(jnp.asarray(low, x.dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_banned_logits_hide_nothing(dtype):
    """Beside -1e30 another order passes; zeros, a lost row, one wrong element and a lost ban do not."""
    x, w, banned = some(0, (16, 64), dtype), some(1, (64, 8), dtype), np.asarray([2, 5], np.int32)
    judged = Judged(banned_logits, x, w, banned)
    [expected] = judged.expected
    is_banned = np.abs(expected.astype(np.float64)) > 1e4
    product = x.astype(np.float64)[:, ::-1] @ w.astype(np.float64)[::-1]
    right = np.where(is_banned, expected, product.astype(dtype))
    zeros, lost = np.where(is_banned, expected, 0), changed(right, 2, product[2])
    judged.check([right], [zeros, changed(right, 3, 0), changed(right, (7, 1), right[7, 2]), lost])


def attention(q, k, v, mask):
    """One head; what is masked gets -1e30, or the least finite number of a narrow type."""
    low = max(BAN, float(jnp.finfo(q.dtype).min))
    scores = jnp.where(mask, q @ k.T / np.sqrt(q.shape[-1]).astype(q.dtype), jnp.asarray(low, q.dtype))
    return jax.nn.softmax(scores, axis=-1) @ v


def attention_in_f64(q, k, v, mask):
    """The same in f64."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = np.where(mask, q @ k.T / np.sqrt(q.shape[-1]), BAN)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", FLOATS)
def test_masked_attention(dtype):
    """f64 passes, also in a row that is masked as a whole; zeros, a lost row and a position that is read do not."""
    q, k, v = (some(seed, (8, 16), dtype) for seed in range(3))
    mask = np.tril(np.ones((8, 8), bool))
    mask[4] = False
    right = attention_in_f64(q, k, v, mask)
    leaking = attention_in_f64(q, k, v, changed(mask, (2, 3), True))
    wrong = [np.zeros_like(right), changed(right, 4, 0), changed(right, 6, right[5]), leaking]
    Judged(attention, q, k, v, mask).check([right], wrong)


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


def test_a_constant_that_cancels():
    """(x + 1e8) - 1e8 keeps few digits of x: its bound is that of 1e8, and moves no other element's."""
    big = np.asarray([1e8, 0, 1], np.float32)
    judged = Judged(lambda x: (x + big) - big, 20 + some(3, (3,)))
    [expected] = judged.expected
    wrong = [changed(expected, 0, expected[0] + 1e5), *(changed(expected, k, expected[k] * 1.0001) for k in (1, 2))]
    judged.check([changed(expected, 0, expected[0] + 8)], wrong)


def test_what_is_swallowed_is_swallowed_everywhere():
    """1e8 + 1 is 1e8 on any machine, as is a mask of -1e30 with a score: nothing there is moved."""
    judged = Judged(lambda x: (x + 1e8) * jnp.float32(0.1), some(3, (3,)))
    [bound] = judged.bounds.of(judged.arguments, judged.expected)
    assert float(bound.max()) < 1e7 * 64 * 2**-23
    masked = Judged(lambda x: jnp.stack([x, x + jnp.float32(BAN)]), some(3, (3,)))
    masked.check(masked.expected, [changed(masked.expected[0], (1, 0), -1.0001e30)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_long_sums_in_any_order(dtype):
    """Sums of one sign and of both pass in f64 and one by one in f32; without a tenth of their terms they do not."""
    x = some(0, (4, 400), dtype)
    x[1] = np.abs(x[1].astype(np.float32)).astype(dtype)
    wide = x.astype(np.float64)
    right = [wide.sum(axis=1), np.add.accumulate(x.astype(np.float32)[:, ::-1], axis=1)[:, -1]]
    Judged(lambda a: a.sum(axis=1), x).check(right, [wide[:, :360].sum(axis=1), np.zeros(4)])


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


def test_bounds_repeat_under_a_seed():
    """The same seed gives the same bounds, another gives others."""
    x = some(0, (16,))
    text = jax.jit(lambda a: jnp.exp(a) * a).lower(x).as_text()
    expected = Executable(text, "exact").run([x])
    one, same, other = (OwnBounds(text, seed=seed).of([x], expected)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_results_that_say_little_are_told():
    """Where rounding alone moves most of a result by more than itself, the notes say so."""
    big = np.full(64, 1e7, np.float32)
    judged = Judged(lambda a, b: (a + b) - b - a, 1 + np.abs(some(0, (64,))), big)
    assert judged.passes(judged.expected[0] * 1.5)
    assert judged.bounds.notes == ("result 0: rounding alone moves 100% of it by more than half of itself",)


def test_what_rounding_makes_infinite_is_undecided_and_told():
    """An element that is infinite in one disturbed run and not in another passes as anything, and is counted."""
    limits = rounding_bounds.bounds_from([[np.float32([np.inf, 1])], [np.float32([1, 1])]], [np.float32([1, 1])])
    assert (rounding_bounds.undecided(limits), bool(np.isinf(limits[0][1]))) == (1, False)


def test_without_a_disturbed_module_arguments_are_moved(monkeypatch):
    """Where the salt does not reach all of a module, its own runs on moved arguments bound it."""

    def unreachable(_):
        raise CannotDisturbError

    monkeypatch.setattr(rounding_bounds, "disturbed", unreachable)
    judged = Judged(lambda a: (a * a).sum(axis=1), some(0, (4, 64)))
    [expected] = judged.expected
    judged.check([expected * np.float32(1 + 2**-22)], [expected * np.float32(1.001), changed(expected, 2, 0)])


@pytest.mark.parametrize("mode", ["exact", "reassociate"])
def test_a_large_constant_hides_no_difference(mode):
    """Beside 1e30, r - r in the place of r is a difference in either mode; the right lowering is none."""
    body = """%big = constant 1.0e30 : 1xf32
    %r = scatter(%x, %i, %u) <inserted=[0], to=[0], ivd=1> {{add}}; %d = {} %r, %r
    %c = concatenate %d, %big, dim = 0 -> 17xf32"""
    given = "%x: 16xf32, %i: 4x1xi32, %u: 4xf32"
    before, wrong = (module(given, body.format(op), "%c") for op in ("maximum", "subtract"))
    assert not hl.verify(before, hl.lower(wrong, float_mode=mode), float_mode=mode).ok
    assert hl.verify(before, hl.lower(before, float_mode=mode), float_mode=mode).ok


SQUARED = "".join(f"%m{k + 1} = dot_general %m{k}, %m{k}, contracting_dims = [1] x [0]\n" for k in range(7))
POWERS = f"""%i = iota dim = 0 : 8x8xf32; %j = iota dim = 1 : 8x8xf32; %d = compare EQ, %i, %j
%e = convert %d -> 8x8xf32; %m0 = add %x, %e
{SQUARED}"""
"""(I + x) to the 128th power, %m7: of ordinary numbers NaN, of zeros zeros."""
NOISE = """%f = constant 1.0e+20 : 64xf32; %one = constant 1.5 : 64xf32; %z = constant 0.0 : f32
%y = add %x, %one; %p = multiply %y, %f; %s = FUNCTION %p
%r = reduce(%s init: %z) applies stablehlo.add across dimensions = [0]"""


def judged(before, after):
    """The verdict where sums may be in another order."""
    return hl.verify(before, after, level="regions", float_mode="reassociate")


@pytest.mark.sweep
def test_a_wrong_product_behind_many_is_seen_on_mild_floats():
    """What is only finite where floats are small is compared there; the right version is the product turned over."""
    turned = "%t = dot_general %x, %m7, contracting_dims = [0] x [1]; %r = transpose %t, dims = [1, 0]"
    before, right, wrong = (
        module("%x: 8x8xf32", POWERS + last)
        for last in (
            "%r = dot_general %m7, %x, contracting_dims = [1] x [0]",
            turned,
            "%r = dot_general %m7, %x, contracting_dims = [0] x [0]",
        )
    )
    assert judged(before, right).ok
    assert judged(before, wrong).differs


def test_what_is_noise_in_every_run_is_not_equal():
    """The sine of a number that rounding moves by many turns may be any; so may a cosine in its place."""
    before, after = (module("%x: 64xf32", NOISE.replace("FUNCTION", name)) for name in ("sine", "cosine"))
    assert not judged(before, after).ok
    assert judged(before, before).ok
