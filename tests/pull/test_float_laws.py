"""Each float law that holds exactly is held against IEEE 754: every f16 with every f16 of a grid, and drawn f32."""

import numpy as np
import pytest

from hlo_lower.verify.pull import LAWS

EVERY_F16 = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
GRID_F16 = EVERY_F16[::1031]
RNG = np.random.default_rng(0)
DRAWN_F32 = np.concatenate(
    [RNG.integers(0, 1 << 32, 40_000, np.uint64).astype(np.uint32).view(np.float32),
     np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3.4e38], np.float32)]
)  # fmt: skip


def pairs():
    """Operands, of each type."""
    yield np.repeat(EVERY_F16, len(GRID_F16)), np.tile(GRID_F16, len(EVERY_F16))
    yield DRAWN_F32, RNG.permutation(DRAWN_F32)


def maximum(a, b):
    """As StableHLO has it: -0 is below 0."""
    return np.where((a == b) & (a == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def _choice(x, y):
    return [(np.add(x, np.where(y > 0, y, x.dtype.type(2))), np.where(y > 0, x + y, x + x.dtype.type(2)))]


def _wide(x):
    return [(x, x.astype(np.float64).astype(x.dtype)), (x, x.astype(np.float32).astype(x.dtype))]


def _compared(x, y):
    """Comparisons of what was widened with numbers near to it, most of which its type does not have."""
    near = y.astype(np.float64) * (1 + RNG.choice([0, 2.0**-30, -(2.0**-30), 2.0**-60], y.shape))
    narrow = near.astype(y.dtype)
    below = np.where(narrow > near, np.nextafter(narrow, y.dtype.type(-np.inf)), narrow)
    above = np.where(narrow < near, np.nextafter(narrow, y.dtype.type(np.inf)), narrow)
    same, wide = np.where(narrow == near, narrow, y.dtype.type(np.nan)), x.astype(np.float64)
    told = [(wide < near, x < above), (wide <= near, x <= below), (wide == near, x == same)]
    told += [(near < wide, below < x), (near <= wide, above <= x)]
    return [(mine.astype(x.dtype), theirs.astype(x.dtype)) for mine, theirs in told]


def _zeros(number):
    """Infinity, a zero, and a number of the zero's sign."""
    return [(number(np.inf), number(0.0), number(1)), (number(np.inf), number(-0.0), number(-1))]


def _sums_of_bits(x):
    """Numbers of one exponent, of their mantissas, and of the bits of both."""
    bits = x.view(f"u{x.itemsize}")
    size = np.finfo(x.dtype).nmant
    mantissa = bits & bits.dtype.type((1 << size) - 1)
    return [
        (
            power + mantissa.astype(x.dtype) * (power * x.dtype.type(2.0**-size)),
            (power.view(bits.dtype) + mantissa).view(x.dtype),
        )
        for power in x.dtype.type([1, 2, 0.125])
    ]


SIDES = {
    "commutes": lambda x, y: [(x + y, y + x), (x * y, y * x), (maximum(x, y), maximum(y, x))],
    "constants": lambda x, y: [(x + y, (x.astype(np.float64) + y.astype(np.float64)).astype(x.dtype))],
    "neutral": lambda x, y: [(x * x.dtype.type(1), x), (x / x.dtype.type(1), x), (x + x.dtype.type(-0.0), x),
                             (x ** x.dtype.type(1), x),
                             (x - x.dtype.type(0), x), (maximum(x, x.dtype.type(-np.inf)), x),
                             (x + x.dtype.type(0), np.where(x == 0, x.dtype.type(0), x))],
    "extreme of one": lambda x, y: [(maximum(x, x), x), (-maximum(-x, -x), x)],
    "infinity": lambda x, y: [(x + inf, np.where(np.isnan(x) | (x == -inf), x.dtype.type(np.nan), inf))
                              for inf in (x.dtype.type(np.inf), x.dtype.type(-np.inf))],
    "difference": lambda x, y: [(x - y, x + (-y))],
    "power of two": lambda x, y: [(x / x.dtype.type(c), x * x.dtype.type(1 / c)) for c in (2, 0.25, -8, 0.5)],
    "bits of a sum": lambda x, y: _sums_of_bits(x),
    "signs": lambda x, y: [((-x) * y, -(x * y)), (x / (-y), -(x / y)), (np.negative(-x), x), (np.abs(-x), np.abs(x))],
    "division by zero": lambda x, y: [(x / zero, np.where((x == 0) | np.isnan(x), x / zero, np.copysign(inf, x * one)))
                                      for inf, zero, one in _zeros(x.dtype.type)],
    "root of zero": lambda x, y: [(1 / np.sqrt(np.copysign(x.dtype.type(0), x)), np.copysign(x.dtype.type(np.inf), x))],
    "root of infinity": lambda x, y: [(np.cbrt(np.full_like(x, np.inf)), np.full_like(x, np.inf))],
    "logarithm of zero": lambda x, y: [(np.log(np.copysign(x.dtype.type(0), x)), np.full_like(x, -np.inf))],
    "round trip": lambda x, y: _wide(x) + _compared(x, y),
    "choice inside": _choice,
}  # fmt: skip
"""Both sides of each law."""

BY_TERMS = {"one NaN", "complex parts"}
"""Laws of which nothing is computed: what they say of terms is tested by `test_laws.py`."""


def differing(sides):
    """How many elements differ, NaN bits aside."""
    one, other = sides
    assert one.dtype == other.dtype
    unsigned = f"u{one.dtype.itemsize}"
    return int(np.sum((one.view(unsigned) != other.view(unsigned)) & ~(np.isnan(one) & np.isnan(other))))


@pytest.mark.parametrize("name", SIDES)
def test_a_law_holds_bit_for_bit(name):
    """Both sides are the same numbers."""
    with np.errstate(all="ignore"):
        for x, y in pairs():
            assert [differing(sides) for sides in SIDES[name](x, y)] == [0] * len(SIDES[name](x, y))


def test_every_law_that_holds_exactly_is_held_against_ieee():
    """A new law of floats has its sides here."""
    assert {law.name for law in LAWS.values() if (law.kind, law.holds) == ("floats", "exactly")} == {*SIDES, *BY_TERMS}


@pytest.mark.parametrize(
    "sides",
    [
        lambda x, y: (x + x.dtype.type(0), x),
        lambda x, y: (np.maximum(x, x.dtype.type(-1e4)), x),
        lambda x, y: (x - y, y - x),
        lambda x, y: (x / x.dtype.type(3), x * x.dtype.type(1 / 3)),
        lambda x, y: (x * x.dtype.type(0), x.dtype.type(0) * np.ones_like(x)),
        lambda x, y: ((x + y) + y, x + (y + y)),
    ],
)
def test_what_is_no_law_is_seen(sides):
    """The comparison fails for what looks like a law."""
    with np.errstate(all="ignore"):
        assert all(differing(sides(x, y)) for x, y in pairs())
