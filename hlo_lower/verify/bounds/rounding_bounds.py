"""How far each element of a result may be off, by what its module does under rounding-sized disturbances."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import WIDE_FLOATS, element_type_of
from hlo_lower.verify.bounds.compare import Difference, first_difference, first_difference_beyond, is_inexact, wide
from hlo_lower.verify.bounds.perturbed_module import CannotDisturbError, disturb_module
from hlo_lower.verify.judges.devices import Runnable, executable
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

LARGE = 1 << 25
"""Elements that a module's operations give from which on its disturbed form is compiled with all optimizations: that
takes seconds longer, and a disturbed product of 2,048 x 32,000 then ran 9 s in the place of 58."""

LITTLE = 0.25
"""The share of a result about which its bounds say little, from which on that is told."""


class OwnBounds:
    """How far each element of a module's results may be off.

    Where the disturbed module is refused, or part of the module is written for one device, the module itself is run on
    disturbed arguments, which shows less: roundings of what is computed from constants alone are not seen.

    Args:
      text: the first version, that is taken as right.
      seed: of the disturbances.
      work: elements that its operations give. See `LARGE`; what optimizations round otherwise is noise, too.
    """

    def __init__(self, text: str, *, seed: int = 0, work: int = 0) -> None:
        self._text, self._seed, self._work = text, seed, work
        self._disturbed: Runnable | None = None
        self._plain: Runnable | None = None
        self._seen: tuple[list[Array], list[Sequence[Array]]] = ([], [])
        self._is_compiled = False
        self._rounds = True
        self._shares: dict[int, float] = {}
        self._undecided = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What the bounds so far say little about, of each result the worst run."""
        told = [
            f"result {number}: rounding alone moves {share:.0%} of it by more than half of itself"
            for number, share in sorted(self._shares.items())
            if share > LITTLE
        ]
        if self._undecided:
            told.append(f"{self._undecided} elements that rounding alone makes NaN or infinite, or no longer so")
        return tuple(told)

    def of(
        self, arguments: Sequence[Array], expected: Sequence[Array], others: Sequence[Sequence[Array]] = ()
    ) -> list[Array]:
        """The bounds of results on some arguments; `others` are further results of the first version.

        Raises:
          CannotRunError: the module itself does not run.
        """
        limits = self._limits(arguments, expected, others)
        self._note(limits, expected)
        return limits

    def _limits(
        self, arguments: Sequence[Array], expected: Sequence[Array], others: Sequence[Sequence[Array]]
    ) -> list[Array]:
        self._compile()
        if not self._rounds:
            return [np.zeros(e.shape) for e in expected]
        if self._disturbed is not None:
            try:
                return bounds_from([*self._disturbed_results(self._disturbed, arguments), *others], expected)
            except CannotRunError:
                self._disturbed = None
        if self._plain is None:
            self._plain = executable(self._text, "exact")
        seen = [self._plain.run(moved) for moved in moved_arguments(arguments, self._seed)]
        return bounds_from([*seen, *others], expected)

    def _disturbed_results(self, runnable: Runnable, arguments: Sequence[Array]) -> list[Sequence[Array]]:
        """The disturbed results; those of the last arguments are kept, because several judges ask for them."""
        known, results = self._seen
        if len(known) != len(arguments) or any(a is not b for a, b in zip(known, arguments, strict=True)):
            results = disturbed_results(runnable.run, arguments, seed=self._seed)
            self._seen = list(arguments), results
        return results

    def difference(
        self,
        expected: Sequence[Array],
        actual: Sequence[Array],
        arguments: Sequence[Array],
        others: Sequence[Sequence[Array]] = (),
    ) -> Difference | None:
        """The first element that is off by more than its bound; nothing is disturbed where all bits are the same, or
        what others show of the bound is enough.

        Raises:
          CannotRunError: the module itself does not run.
        """
        if first_difference(expected, actual) is None:
            return None
        if others and first_difference_beyond(expected, actual, bounds_from(others, expected)) is None:
            return None
        return first_difference_beyond(expected, actual, self.of(arguments, expected, others))

    def _note(self, limits: Sequence[Array], expected: Sequence[Array]) -> None:
        for number, share in enumerate(loose_shares(limits, expected)):
            self._shares[number] = max(self._shares.get(number, 0.0), share)
        self._undecided = max(self._undecided, count_undecided(limits))

    def _compile(self) -> None:
        if self._is_compiled:
            return
        self._is_compiled = True
        try:
            text = disturb_module(self._text)
            if text is None:
                self._rounds = False
            else:
                self._disturbed = executable(text, "default" if self._work >= LARGE else "quick")
        except (CannotDisturbError, CannotRunError):
            self._disturbed = None


# --- bounds ---
#
# How far each element of a result may be off: by what the first version itself does under rounding-sized disturbances.
#
# The bound of an element is
#
#     FACTOR * (the most that it moves in RUNS disturbed runs) + UNITS * eps * |its value| + the smallest normal number
#
# and belongs to that element's own computation: a -1e30 elsewhere in the result, a constant of 1e30, another row's
# cancellation do not reach it; its own cancellation does, because the disturbed runs (`disturb_module`) show it.
#
# - An element that no disturbance moves (moved, masked, an exact zero) is held to a few units in the last place.
# - NaN and infinities are held in place. Where a disturbance makes or unmakes one, the element is undecided: its bound
#   is infinite, and `count_undecided` counts it.
# - Integers and booleans are exact, except those that a disturbance flips (an argmax of near ties): they may be off by
#   as much as they were seen to be.
#
# What this does not see: a rounding that no disturbance imitates (a compiler that computes an exponential to 12 bits);
# a flip that takes more disturbance than was tried. What it lets pass: an error below the noise of its element.


RUNS = 6
"""Disturbed runs. That all six lie within a thirtieth of the spread that one has by chance is less likely than 1e-9."""

FACTOR = 2.0
"""Times what an element was seen to move, in the worst of the runs; the disturbances are larger than roundings already
(`perturbed_module.MOST`), so that what flips within the bound was seen to flip."""

UNITS = 16
"""Machine epsilons of an element's own value."""

NARROW_UNITS = 4
"""The same of types of 16 bits, of which 16 epsilons are an eighth of the number; of still narrower ones 1."""

ARGUMENT_UNITS, NARROW_ARGUMENT_UNITS = 16, 2
"""Machine epsilons that arguments are moved by; of types of 16 bits and less the second."""

LOOSE = 0.5
"""The share of its own magnitude beyond which a bound says little about an element."""


def disturbed_results(
    run: Callable[[list[Array]], Sequence[Array]],
    arguments: Sequence[Array],
    *,
    seed: int = 0,
) -> list[Sequence[Array]]:
    """The results of a disturbed module under several salts.

    Args:
      run: the disturbed module: the arguments and a salt (uint32, a scalar) to the results. The same salt gives the
        same results.
      arguments: of the module, without the salt.
      seed: of the salts.
    """
    salts = np.random.default_rng(seed).integers(0, 1 << 32, size=RUNS, dtype=np.uint32)
    return [run([*arguments, np.asarray(salt)]) for salt in salts]


def bounds_from(seen: Sequence[Sequence[Array]], expected: Sequence[Array]) -> list[Array]:
    """For each result an array of its shape, in f64: how far each element may be off; inf where all is allowed.

    Args:
      seen: disturbed results, and others that are as right as what is expected, such as those of another level of
        optimization, each a list as long as `expected`.
      expected: the undisturbed results.
    """
    return [_bound(e, [results[k] for results in seen]) for k, e in enumerate(expected)]


def moved_arguments(arguments: Sequence[Array], seed: int = 0) -> list[list[Array]]:
    """Arguments with each float moved by up to `ARGUMENT_UNITS` epsilons, where no disturbed module can be had."""
    rng = np.random.default_rng(seed)
    return [[_perturb(rng, array) for array in arguments] for _ in range(RUNS)]


def _perturb(rng: np.random.Generator, array: Array) -> Array:
    if not is_inexact(array):
        return array
    unit = element_type_of(array.dtype).epsilon
    most = ARGUMENT_UNITS if unit < 2.0**-12 else NARROW_ARGUMENT_UNITS
    with np.errstate(all="ignore"):
        own = wide(array)
        return np.where(np.isfinite(own), own * (1 + most * unit * rng.uniform(-1, 1, array.shape)), own).astype(
            array.dtype
        )


def _bound(expected: Array, seen: Sequence[Array]) -> Array:
    moved = np.zeros(expected.shape)
    for one in seen:
        moved = np.maximum(moved, _distance(expected, one))
    if not is_inexact(expected):
        return moved
    declared = element_type_of(expected.dtype)
    unit, smallest = declared.epsilon, declared.smallest if declared.part in WIDE_FLOATS else 0.0
    units = UNITS if unit < 2.0**-12 else NARROW_UNITS if unit < 2.0**-6 else 1
    with np.errstate(all="ignore"):
        size = np.abs(wide(expected))
        own = np.where(np.isfinite(size), units * unit * size, 0.0)
    return FACTOR * moved + own + smallest


def _distance(a: Array, b: Array) -> Array:
    """|a - b| in f64; 0 where both are the same NaN or infinity, inf where one of them is none."""
    with np.errstate(all="ignore"):
        x, y = wide(a), wide(b)
        same = (x == y) | ((x != x) & (y != y))
        far = np.abs(x - y)
    return np.where(same, 0.0, np.where(np.isfinite(far), far, np.inf))


def count_undecided(bound: Sequence[Array]) -> int:
    """How many elements have an infinite bound: a disturbance turns them into NaN or infinity, or back, so they are not
    compared."""
    return sum(int(np.count_nonzero(np.isinf(b))) for b in bound)


def loose_shares(bound: Sequence[Array], expected: Sequence[Array]) -> list[float]:
    """For each result the share of elements about which its bounds say little: those beyond `LOOSE` of themselves."""
    shares: list[float] = []
    for limit, one in zip(bound, expected, strict=True):
        with np.errstate(all="ignore"):
            size = np.abs(wide(one))
            is_loose = np.isfinite(size) & (limit > LOOSE * size) & (size > 0) & (limit > 0)
        shares.append(float(np.mean(is_loose)) if one.size else 0.0)
    return shares
