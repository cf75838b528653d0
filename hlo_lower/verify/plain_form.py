"""The module as it was given, run against its plain form: what legalizing and narrowing integers made of it."""

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.bounds.rounding_bounds import OwnBounds
from hlo_lower.verify.drive.index_regimes import ordinary
from hlo_lower.verify.judges.cost import cost_of
from hlo_lower.verify.judges.devices import executable
from hlo_lower.verify.run import CannotRunError, parse_or_refuse, read_signature
from hlo_lower.verify.verdict import ModuleVerdict

Array = NDArray[Any]

LARGEST = 8
"""Integers are drawn below this: what narrowing them assumes holds for those, and sizes and places often are small."""

FAR = (1 << 15, 1 << 20, 1 << 31)
"""Where a result says whether what is assumed held, integers and floats are drawn up to these as well."""


def verify_plain(
    before: str, after: str, *, seed: int, runs: int, memory_budget: int, near: bool, checked: bool = False
) -> ModuleVerdict:
    """Run a module and its plain form on seeded arguments with small integers.

    Args:
      before, after: the two, of one signature.
      seed, runs: of the arguments.
      memory_budget: bytes of arguments and results up to which they are run.
      near: whether custom calls were written out, so that each float is compared within the bound of its own rounding
        and not bit for bit: erf's polynomial is within 4 units of the call's, which are disturbed by 32.
      checked: whether the second one has a result more, which says whether its other results are to be the same: they
        are compared where it is true. Arguments are drawn from wider ranges then, too.
    """
    try:
        signature = read_signature(parse_or_refuse(before, "before"))
        if signature.bytes > memory_budget:
            return ModuleVerdict("not run", reason=f"{signature.bytes / 2**30:.1f} GiB of arguments and results")
        versions = [executable(text, "exact") for text in (before, after)]
        own_bounds = OwnBounds(before, seed=seed)
        limits = [LARGEST] * runs + [limit for limit in FAR if checked and cost_of(before).seconds < inf]
        compared = 0
        for k, limit in enumerate(limits):
            rng = np.random.default_rng([seed, k])
            arguments = [_drawn(rng, a.shape, np.dtype(a.dtype), limit) for a in signature.arguments]
            expected, actual = (version.run(arguments) for version in versions)
            if checked:
                *actual, held = actual
                if not bool(held):
                    continue
            compared += 1
            difference = first_difference(expected, actual)
            if difference is not None and near:
                difference = own_bounds.difference(expected, actual, arguments)
            if difference is not None:
                return ModuleVerdict("differs", runs=k + 1, difference=difference)
    except CannotRunError as error:
        return ModuleVerdict("not run", reason=str(error))
    how = "each float within the bound of its own rounding" if near else "bit for bit"
    if checked:
        how += f", where its last result is true, as it was in {compared} of {len(limits)} runs"
        if not compared:
            return ModuleVerdict("not run", reason="its last result was false in every run: nothing is to be compared")
    return ModuleVerdict("equal", runs=compared, how=f"{how}, integers below {max(limits)}")


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any], limit: int) -> Array:
    if dtype.kind not in "iu":
        drawn = ordinary(rng, shape, dtype)
        return drawn if limit == LARGEST or dtype.kind != "f" else (drawn * limit).astype(dtype)
    if limit == LARGEST:
        return rng.integers(0, LARGEST, shape).astype(dtype)
    bits = np.iinfo(dtype).bits
    most = min(limit, 1 << min(bits - (dtype.kind == "i"), 31 + (dtype.kind == "u")))
    return rng.integers(0 if dtype.kind == "u" else -most, most, shape).astype(dtype)
