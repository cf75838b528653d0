"""The table of conformance: counts by what the modules are, what is not right, and the same as plain data."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from hlo_lower.base.errors import EXIT_DIFFERS, EXIT_NOT_LOWERED, EXIT_OK
from hlo_lower.consumers import ConsumerOutcome
from hlo_lower.testing.conformance.conformance_run import Check

RESULTS = ("right", "converted", "wrong", "refused", "crashed", "timed out")
MOST_LISTED = 30

AXES: tuple[tuple[str, Callable[[Check], str]], ...] = (
    ("indices", lambda check: check.indices),
    ("form", lambda check: check.module.split("/")[0]),
    ("combiner", lambda check: check.module.split("/")[1]),
    ("element type", lambda check: check.module.split("/")[2]),
    ("index type", lambda check: check.module.split("/")[3]),
)


def exit_code(checks: Iterable[Check]) -> int:
    """0: every converted module is right; 1: one is wrong; 3: one is refused, crashes, or was not lowered."""
    results = {check.converted.result for check in checks if not check.converted.ok}
    if "wrong" in results:
        return EXIT_DIFFERS
    return EXIT_NOT_LOWERED if results else EXIT_OK


def lines(title: str, checks: Sequence[Check]) -> list[str]:
    """The whole report, in Markdown: a column for each result that is there, native and converted."""
    modules = len({check.module for check in checks})
    told = f"{title}: {modules} scatters, {len(checks)} checks"
    columns = [(v, r) for v in ("native", "converted") for r in RESULTS if any(_of(c, v).result == r for c in checks)]
    found = [
        told,
        "",
        "| " + " | ".join(["", *(f"{version} {result}" for version, result in columns)]) + " |",
        "| --- |" + " ---: |" * len(columns),
        _row("all", checks, columns),
    ]
    for axis, value_of in AXES:
        values = list(dict.fromkeys(map(value_of, checks)))
        if len(values) > 1:
            found += [_row(f"{axis} {v}", [c for c in checks if value_of(c) == v], columns) for v in values]
    lost = [c for c in checks if c.native.ok and not c.converted.ok]
    gained = [c for c in checks if c.converted.ok and not c.native.ok]
    found += ["", f"Gained by conversion: {len(gained)}. Lost: {len(lost)}."]
    for version in ("native", "converted"):
        found += _not_right(version, checks)
    return found


def to_json(checks: Sequence[Check], settings: dict[str, Any]) -> dict[str, Any]:
    """Counts and all checks as plain data."""
    counts = {
        version: dict(Counter(_of(check, version).result for check in checks)) for version in ("native", "converted")
    }
    return {"settings": settings, **counts, "checks": [asdict(check) for check in checks]}


def _of(check: Check, version: str) -> ConsumerOutcome:
    return check.native if version == "native" else check.converted


def _row(name: str, checks: Sequence[Check], columns: Sequence[tuple[str, str]]) -> str:
    counts = Counter((version, _of(check, version).result) for check in checks for version in ("native", "converted"))
    return "| " + " | ".join([name, *(str(counts[column]) for column in columns)]) + " |"


def _not_right(version: str, checks: Sequence[Check]) -> list[str]:
    """The failures of a version, those of the same message together."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        outcome = _of(check, version)
        if not outcome.ok:
            said = "" if outcome.result == "wrong" else outcome.message  # what differs is another in each
            groups.setdefault(f"{outcome.result}{said and f': {said}'}", []).append(check)
    if not groups:
        return []
    found = ["", f"Not right {'as they are' if version == 'native' else 'converted'}:", ""]
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for said, group in ordered[:MOST_LISTED]:
        names = [f"{check.module} ({check.indices})" for check in group]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        found.append(f"- {said}: {', '.join(names[:3])}{more}")
    return found + ([f"- and {len(ordered) - MOST_LISTED} other messages"] if len(ordered) > MOST_LISTED else [])
