"""Comparison: bit for bit, and within a bound that is stated."""

import ml_dtypes
import numpy as np
import pytest

from hlo_lower.base.element_types import element_type_of
from hlo_lower.verify.bounds.compare import first_difference, first_difference_beyond, nan_share, overflow_taken


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
