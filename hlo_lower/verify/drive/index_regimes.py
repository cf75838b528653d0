"""Inputs that drive a scatter through every index regime, and seeded inputs for a whole module.

A regime says where window starts shall lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of
from hlo_lower.verify.bounds.compare import is_inexact

Array = NDArray[Any]

REGIMES = (
    "in range",
    "first and last",
    "one past the end",
    "overhanging",
    "negative",
    "far out",
    "duplicates",
    "all equal",
    "sorted",
    "all dropped",
    "mixed",
    "some dropped",
)
"""Where the window starts are drawn from; see `starts_in`."""

SPECIAL_VALUES = ("mixed", "duplicates")
"""Regimes whose operands and updates hold NaN, infinities and signed zeros; the others hold ordinary numbers."""

TURNED = ("first and last", "one past the end", "overhanging", "negative", "far out", "mixed")
"""Regimes of which a scatter of few windows is run several times: one draw would leave most of their places out."""

REPEATED = ("duplicates", "all equal", "mixed", "some dropped")
"""Regimes whose values decide what is seen, the rounding of a sum, a zero's sign: small scatters run them again."""

VALUES_AIMED_AT = 4
"""Runs of these."""

WINDOWS_AIMED_AT = 12
"""Windows that such a regime places in all: as many as it has places, or nearly."""


@dataclass
class Turn:
    """One of several runs of a regime.

    Attributes:
      number: from 0; the first one takes any places.
      order: draws the order in which the others take them; made anew with the same seed for each turn, so that they
        take different ones.
    """

    number: int
    order: np.random.Generator


def turns_of(regime: str, positions: int, elements: int) -> int:
    """How many runs a regime needs; fewer where one is dear."""
    least = VALUES_AIMED_AT if regime in REPEATED and elements <= 1 << 10 else 1
    if regime not in TURNED or positions < 1:
        return least
    most = WINDOWS_AIMED_AT if elements <= 1 << 16 else 4 if elements <= 1 << 20 else 1
    return max(least, min(most, -(-WINDOWS_AIMED_AT // positions)))


@dataclass(frozen=True)
class Column:
    """One component of the index vector: the size of its operand dim and the extent of the window there."""

    size: int
    window: int


def starts_in(
    rng: np.random.Generator,
    regime: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    column: Column,
    turn: Turn | None = None,
) -> Array:
    """Starts in one dim of size D under a window of extent W, in the leaf's type."""
    size, window = column.size, column.window
    last = max(size - window, 0)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    inside = list(range(last + 1)) if last < 4096 else [0, 1, last // 2, last - 1, last]
    overhanging = [*range(max(1 - window, -8), 0), *range(last + 1, min(size, last + 9))]
    narrowed = [sign * (1 << bits) + last // 2 for bits in (8, 16, 32) for sign in (1, -1)]  # inside in fewer bits
    pools: dict[str, list[int]] = {
        "in range": inside,
        "first and last": [0, last],
        "one past the end": [last, last + 1],
        "overhanging": overhanging or [last + 1],
        "negative": [-1, -2, -size, -size - 1],
        "far out": [low, high, low + 1, high - 1, size + window, -size - window, 2**31 - 1, -(2**31), 2**31, *narrowed],
        "duplicates": [int(v) for v in rng.choice(inside, 2)],
        "all equal": [int(rng.choice(inside))],
        "sorted": inside,
        "all dropped": [size, size + 1, size + window],
    }
    pools["some dropped"] = [0, min(1, last), size, -size - window]  # what one write leaves for those that follow it
    pool = pools.get(regime) or [v for values in pools.values() for v in values]
    fitting = [v for v in pool if low <= v <= high] or [min(max(v, low), high) for v in pool]
    places = rng.integers(len(fitting), size=shape)
    count = prod(shape)
    if turn is not None and turn.number and count < len(fitting):  # each takes the next ones, in an order of its own
        order = turn.order.permutation(len(fitting))
        places = order[((turn.number - 1) * count + np.arange(count)) % len(fitting)].reshape(shape)
    drawn = np.asarray(fitting, object)[places]
    array = np.asarray(drawn).astype(dtype)
    outside = [v for v in (size, *pools["negative"]) if low <= v <= high]
    if regime == "some dropped" and turn is not None and turn.number in (1, 2) and outside and count:
        places = np.arange(count) == (0 if turn.number == 1 else count - 1)  # all but the first one, or the last one
        array = np.where(places, 0, outside[0]).astype(dtype).reshape(shape)
    return np.sort(array, axis=None).reshape(shape) if regime == "sorted" else array


def ordinary(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Ordinary values: normal floats, integers of the whole type, booleans."""
    shape = tuple(shape)
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True))
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if (ends := element_type_of(dtype).integer_range) is not None:  # the narrow integers of ml_dtypes
        return np.asarray(rng.integers(ends[0], ends[1] + 1, size=shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


SMALL, REACH = 4, 32
"""Below the one lie the integers of a first run, in range for most tables; below the other those of further runs."""


def other_integers(
    rng: np.random.Generator, number: int, shape: tuple[int, ...], dtype: np.dtype[Any], largest: int
) -> Array:
    """Integers that place no scatter: token ids, lengths, tables of blocks, counts of turns.

    Args:
      rng: draws them.
      number: of the run: small ones in the first; in the second tables ascend, as blocks that lie next to each other
        do, and other integers are wide; in the third all are wide; further runs repeat these.
      shape, dtype: of the argument.
      largest: the largest extent of the module's arguments, which bounds the wide ones.
    """
    bound = SMALL if number % 3 == 0 else max(SMALL, min(REACH, largest))
    if number % 3 == 1 and len(shape) > 1:
        starts = rng.integers(0, SMALL, size=(*shape[:-1], 1))
        return np.asarray((starts + np.arange(shape[-1])) % bound, np.int64).astype(dtype)
    return np.asarray(rng.integers(0, bound, size=shape), np.int64).astype(dtype)


def with_special_values(rng: np.random.Generator, array: Array) -> Array:
    """The same array with NaN, infinities and signed zeros in half of its places or more, each as often as the others.

    Real floats only; types without infinities have NaN for them. No subnormal numbers: XLA's arithmetic on CPU flushes
    them to zero.
    """
    if not is_inexact(array) or array.dtype.kind == "c":
        return array
    special = rng.permutation(np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0])).astype(array.dtype)
    chosen = rng.permutation(array.size)[: max((array.size + 1) // 2, special.size)]  # of a few all places
    changed = array.copy().reshape(-1)
    changed[chosen] = special[np.arange(chosen.size) % special.size]
    return changed.reshape(array.shape)
