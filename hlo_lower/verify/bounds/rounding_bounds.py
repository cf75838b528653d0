"""Bounds of a module's elements by its own rounding: the disturbed module compiled once, when it is first needed."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.bounds.compare import Difference, first_difference, first_difference_beyond
from hlo_lower.verify.bounds.perturbed_module import CannotDisturbError, disturbed
from hlo_lower.verify.bounds.rounding_error import (
    bounds_from,
    disturbed_results,
    loose_shares,
    moved_arguments,
    undecided,
)
from hlo_lower.verify.judges.devices import Runnable, executable
from hlo_lower.verify.run import CannotRunError

Array = NDArray[Any]

LARGE = 1 << 25
"""Elements that a module's operations give from which on its disturbed form is compiled with all optimizations: that
takes seconds longer, and a disturbed product of 2,048 x 32,000 then ran 9 s in the place of 58."""

LITTLE = 0.25
"""The share of a result about which its bounds say little, from which on that is told."""


class OwnBounds:
    """How far each element of a module's results may be off: see `rounding_error`.

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
        """The first element that is off by more than its bound; nothing is disturbed where all bits are the same.

        Raises:
          CannotRunError: the module itself does not run.
        """
        if first_difference(expected, actual) is None:
            return None
        return first_difference_beyond(expected, actual, self.of(arguments, expected, others))

    def _note(self, limits: Sequence[Array], expected: Sequence[Array]) -> None:
        for number, share in enumerate(loose_shares(limits, expected)):
            self._shares[number] = max(self._shares.get(number, 0.0), share)
        self._undecided = max(self._undecided, undecided(limits))

    def _compile(self) -> None:
        if self._is_compiled:
            return
        self._is_compiled = True
        try:
            text = disturbed(self._text)
            if text is None:
                self._rounds = False
            else:
                self._disturbed = executable(text, "default" if self._work >= LARGE else "quick")
        except (CannotDisturbError, CannotRunError):
            self._disturbed = None
