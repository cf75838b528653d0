"""Verdicts on two whole versions as the plain data of a file: what is verified is not verified again.

A region's verdict is kept by itself (`judges.kept`). This is the rest: the alignment, the runs of the whole module and
the claims. Only what is verified is kept, so that no difference and nothing doubtful is ever read from a file.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, cast

from hlo_lower.verify.cache import VerdictCache
from hlo_lower.verify.claim_checks import ClaimsVerdict
from hlo_lower.verify.region_verdict import RegionVerdict
from hlo_lower.verify.verdict import LARGE_AND_EQUAL, NUMBERS_CHANGE, OPEN_SIZES, ModuleVerdict, Verdict

FROM_CACHE = ", from the cache"
"""Behind how the runs of a module were compared."""

STEADY = (LARGE_AND_EQUAL, NUMBERS_CHANGE, OPEN_SIZES)
"""Reasons for which a module is not run that depend neither on time nor on the machine."""


def find_verdict(cache: VerdictCache, content: object) -> Verdict | None:
    """The verdict that is kept of some content, which says where it comes from; None where none is."""
    return cache.find("verified", content, _read)


def keep_verdict(cache: VerdictCache, content: object, found: Verdict) -> None:
    """Keep a verdict if it is a good one on which no judge is missing, and of which no run was given up."""
    parts = [found, *([] if found.one_form is None else [found.one_form])]
    modules = [one for part in parts for one in (part.module, part.plain) if one is not None]
    regions = [region for part in parts for region in part.regions]
    is_whole = all(one.status == "equal" or one.reason in STEADY for one in modules)
    if found.ok and is_whole and not any(region.excluded or region.inputs for region in regions):
        cache.keep("verified", content, _verdict_to_json(found))


def _verdict_to_json(found: Verdict) -> dict[str, Any]:
    one_form = None if found.one_form is None else _verdict_to_json(found.one_form)
    regions = [{name: value for name, value in asdict(region).items() if name != "inputs"} for region in found.regions]
    return asdict(replace(found, regions=(), one_form=None)) | {"regions": regions, "one_form": one_form}


def _read(data: Mapping[str, Any]) -> Verdict:
    given = {name: _as_tuples(value) for name, value in data.items() if name not in _PARTS}
    one_form = None if data["one_form"] is None else _read(data["one_form"])
    claims = None if data["claims"] is None else ClaimsVerdict(**_as_tuples(data["claims"]))
    module, plain = (_module(data[name]) for name in ("module", "plain"))
    regions = tuple(replace(RegionVerdict(**_as_tuples(one)), from_cache=True) for one in data["regions"])
    return Verdict(regions, module=module, plain=plain, one_form=one_form, claims=claims, **given)


_PARTS = frozenset({"regions", "module", "plain", "claims", "one_form"})


def _module(data: Mapping[str, Any] | None) -> ModuleVerdict | None:
    if data is None:
        return None
    found = ModuleVerdict(**_as_tuples(data))
    return replace(found, how=f"{found.how}{FROM_CACHE}") if found.status == "equal" else found


def _as_tuples(value: Any) -> Any:
    """Plain data of a file, its lists as tuples."""
    if isinstance(value, dict):
        return {name: _as_tuples(one) for name, one in cast(dict[str, Any], value).items()}
    return tuple(map(_as_tuples, cast(list[Any], value))) if isinstance(value, list) else value
