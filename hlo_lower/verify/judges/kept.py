"""Judgements as the plain data of a file, and what each of them rests on."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type, element_type_of
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.align.corrections import Sought
from hlo_lower.verify.align.loops import values_of
from hlo_lower.verify.align.piece import Pieces
from hlo_lower.verify.cache import VerdictCache, digest_of
from hlo_lower.verify.drive.driven_runs import Run
from hlo_lower.verify.judges.definitions import Hits
from hlo_lower.verify.judges.judge import Judgement, Terms
from hlo_lower.verify.patience import patience

Array = NDArray[Any]

MOST_BYTES = 1 << 20
"""Bytes of arrays up to which a judgement is kept: of large inputs a difference is soon found again."""


def content_of(region: Region, pieces: Pieces, terms: Terms, sought: Sought | None, known_of: object) -> object:
    """What a judgement rests on: both pieces, what is known of their inputs, the terms, the limit of time, as that says
    what is tried at all, and the runs that a wider region seeks."""
    known = values_of(region)
    values = tuple((place, known[n]) for place, n in enumerate(region.inputs) if n in known)
    looked_for = (
        None if sought is None else tuple((_hashable_arrays(wanted), told) for wanted, told in sought.sought_arrays())
    )
    plain = replace(terms, cache=None)
    return pieces.first, pieces.second, len(pieces.seen), values, known_of, plain, patience().given, looked_for


def _hashable_arrays(wanted: Mapping[str, Array]) -> tuple[tuple[str, str, tuple[int, ...], bytes], ...]:
    return tuple((name, a.dtype.name, a.shape, a.tobytes()) for name, a in wanted.items())


_REMEMBERED: dict[str, Judgement] = {}
"""What this process has judged, the latest last: of several modules many have the same pieces."""

MOST_REMEMBERED, BYTES_REMEMBERED = 1024, 1 << 16
"""Judgements that are remembered, and bytes of arrays of one."""


def forget_judgements() -> None:
    """Judge all anew: for tests, which break judges."""
    _REMEMBERED.clear()


def in_cache(cache: VerdictCache | None, content: object) -> Judgement | None:
    """The judgement that is kept of some content; without a cache that which this process made."""
    if cache is not None:
        return cache.find("judged", content, _read)
    found = _REMEMBERED.get(digest_of(content))
    return None if found is None else replace(found)


def keep(cache: VerdictCache | None, content: object, found: Judgement) -> None:
    """Keep a judgement that is a verdict and does not depend on time: nothing was spent in vain until now and the
    deadline is not over, so that no judge is missing for that, and runs had all outcomes."""
    left = patience()
    arrays = [a for run in found.failures for a in run.arguments]
    size = sum(a.nbytes for a in arrays) + sum(len(value) for values in found.seen for value in values)
    is_whole = found.status in ("equal", "differs") and not found.not_exercised and found.doubt is None
    is_in_time = left.left == left.given and not left.deadline.is_over
    if not (is_whole and is_in_time) or size > (MOST_BYTES if cache is not None else BYTES_REMEMBERED):
        return
    if cache is not None:
        cache.keep("judged", content, _judgement_to_json(found))
        return
    _REMEMBERED[digest_of(content)] = replace(found)
    while len(_REMEMBERED) > MOST_REMEMBERED:
        del _REMEMBERED[next(iter(_REMEMBERED))]


def _judgement_to_json(found: Judgement) -> dict[str, Any]:
    """A judgement as plain data."""
    return {
        "status": found.status,
        "runs": found.runs,
        "judges": found.judges,
        "places": astuple(found.places),
        "difference": found.difference,
        "excluded": found.excluded,
        "failures": [_run_to_json(run) for run in found.failures],
        "outputs": sorted(found.outputs),
        "is_rounding": found.is_rounding,
        "seen": [sorted(b64encode(value).decode() for value in values) for values in found.seen],
    }


def _read(data: Mapping[str, Any]) -> Judgement:
    """The judgement that was written."""
    return Judgement(
        data["status"],
        runs=data["runs"],
        judges=tuple(data["judges"]),
        places=Hits(*data["places"]),
        difference=data["difference"],
        excluded=tuple(data["excluded"]),
        failures=[_run_read(run) for run in data["failures"]],
        outputs=set(data["outputs"]),
        is_rounding=data["is_rounding"],
        seen=[{b64decode(value) for value in values} for values in data["seen"]],
        from_cache=True,
    )


def _run_to_json(run: Run) -> dict[str, Any]:
    arguments = [
        {"type": element_type_of(a.dtype).name, "shape": a.shape, "data": b64encode(a.tobytes()).decode()}
        for a in run.arguments
    ]
    return {"aim": run.aim, "arguments": arguments, "is_special": run.is_special, "is_large": run.is_large}


def _run_read(data: Mapping[str, Any]) -> Run:
    return Run(data["aim"], [_array(one) for one in data["arguments"]], data["is_special"], data["is_large"])


def _array(data: Mapping[str, Any]) -> Array:
    dtype = element_type(data["type"]).dtype
    return np.ndarray(tuple(data["shape"]), dtype, b64decode(data["data"])).copy()
