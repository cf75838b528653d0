"""Arguments of the modules of one op: small numbers of both signs, then large and positive ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.run import Signature

RUNS = ("both signs", "large")


def arguments(signature: Signature, op: str, run: str) -> list[NDArray[Any]]:
    """One set; a divisor is never 0, a shift never beyond the type, and the ends of a clamp are in order."""
    rng = np.random.default_rng([len(op), len(run)])
    drawn = [_drawn(rng, a.shape, np.dtype(a.dtype), run) for a in signature.arguments]
    if op in ("stablehlo.divide", "stablehlo.remainder"):
        drawn[1] = np.where(drawn[1] == 0, np.ones_like(drawn[1]), drawn[1])
    if op.startswith("stablehlo.shift"):
        drawn[1] = (np.abs(drawn[1].astype(np.int64)) % (drawn[1].dtype.itemsize * 8)).astype(drawn[1].dtype)
    if op == "stablehlo.power" and drawn[0].dtype.kind in "iu":
        drawn[1] = (np.abs(drawn[1].astype(np.int64)) % 4).astype(drawn[1].dtype)
    if op == "stablehlo.clamp" and drawn[0].dtype != np.bool_:
        drawn[0], drawn[2] = np.minimum(drawn[0], drawn[2]), np.maximum(drawn[0], drawn[2])
    return drawn


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: "np.dtype[Any]", run: str) -> NDArray[Any]:
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if run == "large":
            return np.asarray(rng.integers(info.min, info.max, size=shape, dtype=dtype, endpoint=True))
        return np.asarray(rng.integers(max(info.min, -6), 7, size=shape)).astype(dtype)
    return np.asarray(rng.uniform(0.1, 9, shape) if run == "large" else rng.standard_normal(shape)).astype(dtype)
