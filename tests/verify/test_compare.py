"""Comparison: bit for bit, and within a bound that is stated."""

import ml_dtypes
import numpy as np
import pytest

from hlo_lower.verify.compare import epsilon, first_difference, first_difference_within, largest_magnitude, nan_share


def f32(*values: float) -> np.ndarray:
    """An array of float32."""
    return np.asarray(values, np.float32)


QUIET, SIGNALLING, NEGATIVE = (
    np.asarray([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FA00001, 0xFFC00000)
)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.complex64])
def test_zeros_of_another_sign_differ(dtype):
    """+0 and -0 are not the same bit for bit, and are within any bound."""
    plus, minus = np.zeros(2, dtype), -np.zeros(2, dtype)
    found = first_difference([plus], [minus])
    assert found is not None
    assert (found.index, found.count, found.what) == ((0,), 2, "bit for bit")
    assert first_difference([minus], [minus.copy()]) is None
    assert first_difference_within([plus], [minus], 0, [0.0]) is None


@pytest.mark.parametrize("other", [QUIET, SIGNALLING, NEGATIVE])
def test_any_nan_equals_any_nan(other):
    """The payload and the sign of a NaN do not count, a number in its place does."""
    assert first_difference([QUIET], [other]) is None
    assert first_difference_within([QUIET], [other], 0, [0.0]) is None
    assert first_difference([other], [f32(1)]) is not None
    assert first_difference_within([other], [f32(1)], 1 << 20, [1.0]) is not None


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
    for found in (first_difference([expected], [actual]), first_difference_within([expected], [actual], 8, [1.0])):
        assert found is not None
        assert found.what == "types"


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint64, ml_dtypes.int4])
def test_integers_have_no_bound(dtype):
    """Integers and booleans are equal or differ, whatever the bound."""
    a, b = np.asarray([0, 1]).astype(dtype), np.asarray([0, 0]).astype(dtype)
    assert first_difference([a], [a.copy()]) is None
    assert first_difference([a], [b]) is not None
    assert first_difference_within([a], [b], 1 << 30, [1e9]) is not None


def test_the_bound_grows_with_units_and_scale():
    """n machine epsilons of the largest of both magnitudes and the scale are within, more is not."""
    eps = float(np.finfo(np.float32).eps)
    assert first_difference_within([f32(1)], [f32(1 + 2 * eps)], 2, [0.0]) is None
    assert first_difference_within([f32(1)], [f32(1 + 4 * eps)], 2, [0.0]) is not None
    assert first_difference_within([f32(0)], [f32(eps)], 2, [1.0]) is None
    found = first_difference_within([f32(0)], [f32(eps)], 2, [0.1])
    assert found is not None
    assert found.what == "bound 2 eps of max(|a|, |b|, 0.1)"


@pytest.mark.parametrize("scale", [1.0, 1e30])
def test_infinity_is_within_no_bound(scale):
    """An infinity is equal to itself, and to nothing finite, nor to the other one."""
    infinite = f32(np.inf)
    assert first_difference_within([infinite], [infinite.copy()], 4, [scale]) is None
    for other in (f32(3e38), f32(-np.inf)):
        assert first_difference_within([infinite], [other], 4, [scale]) is not None
        assert first_difference_within([other], [infinite], 4, [scale]) is not None


def test_a_difference_is_where_it_is():
    """Empty results are equal, and a scalar has an empty index."""
    assert first_difference([np.zeros((0, 3), np.float32)], [np.zeros((0, 3), np.float32)]) is None
    found = first_difference([np.asarray(1)], [np.asarray(2)])
    assert found is not None
    assert found.index == ()


def test_machine_epsilons_and_magnitudes():
    """Epsilon is known for every float type; magnitudes and NaN shares leave out what is not finite or no float."""
    assert epsilon(np.dtype(np.float32)) == 2**-23
    assert epsilon(np.dtype(ml_dtypes.bfloat16)) == 2**-7
    assert epsilon(np.dtype(np.complex64)) == 2**-23
    assert largest_magnitude(f32(-3, np.nan, np.inf, 2)) == 3
    assert (largest_magnitude(np.asarray([9])), largest_magnitude(f32())) == (0, 0)
    assert (nan_share(f32(1, np.nan)), nan_share(np.asarray([1])), nan_share(f32())) == (0.5, 0, 0)
