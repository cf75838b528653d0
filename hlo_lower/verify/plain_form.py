"""The module as it was given, run against its plain form: what legalizing and narrowing integers made of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.compare import first_difference
from hlo_lower.verify.index_regimes import ordinary
from hlo_lower.verify.rounding_bounds import OwnBounds
from hlo_lower.verify.run import CannotRunError, Executable, parse_or_refuse, read_signature
from hlo_lower.verify.verdict import ModuleVerdict

Array = NDArray[Any]

LARGEST = 8
"""Integers are drawn below this: what narrowing them assumes holds for those, and sizes and places often are small."""


def verify_plain(before: str, after: str, *, seed: int, runs: int, memory_budget: int, near: bool) -> ModuleVerdict:
    """Run a module and its plain form on seeded arguments with small integers.

    Args:
      before, after: the two, of one signature.
      seed, runs: of the arguments.
      memory_budget: bytes of arguments and results up to which they are run.
      near: whether custom calls were written out, so that each float is compared within the bound of its own rounding
        and not bit for bit: erf's polynomial is within 4 units of the call's, which are disturbed by 32.
    """
    try:
        signature = read_signature(parse_or_refuse(before, "before"))
        if signature.bytes > memory_budget:
            return ModuleVerdict("not run", reason=f"{signature.bytes / 2**30:.1f} GiB of arguments and results")
        versions = [Executable(text, "exact") for text in (before, after)]
        own_bounds = OwnBounds(before, seed=seed)
        for k in range(runs):
            rng = np.random.default_rng([seed, k])
            arguments = [_drawn(rng, a.shape, np.dtype(a.dtype)) for a in signature.arguments]
            expected, actual = (version.run(arguments) for version in versions)
            difference = first_difference(expected, actual)
            if difference is not None and near:
                difference = own_bounds.difference(expected, actual, arguments)
            if difference is not None:
                return ModuleVerdict("differs", runs=k + 1, difference=difference)
    except CannotRunError as error:
        return ModuleVerdict("not run", reason=str(error))
    how = "each float within the bound of its own rounding" if near else "bit for bit"
    return ModuleVerdict("equal", runs=runs, how=f"{how}, integers below {LARGEST}")


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return rng.integers(0, LARGEST, shape).astype(dtype) if dtype.kind in "iu" else ordinary(rng, shape, dtype)
