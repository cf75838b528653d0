"""The table: how many modules are right, wrong, refused, crashed and timed out, native against converted, and which."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlo_lower.consumers import Consumer, ConsumerOutcome
from matrix.entry import Entry

ROWS = ("right", "wrong", "refused", "crashed", "timed out")
CONVERTER_ROWS = ("converted", "refused", "crashed", "timed out")
RIGHT_IN_RANGE = 2
"""The first two runs have all positions in bounds; what ends in the third ends by positions out of bounds."""

NOTHING_NAMED = "no op named"
MOST_LISTED = 200
MOST_NAMED = 5


def table_lines(consumer: Consumer, version: str, entries: Sequence[Entry], left: int = 0) -> list[str]:
    """The whole report, in Markdown."""
    judged = [entry for entry in entries if entry.native is not None]
    lines = [
        f"{consumer.title} {version}, {len(entries)} modules, {len(judged)} judged",
        "",
        "| result | native | converted |",
        "| --- | ---: | ---: |",
        *(_row(row, judged) for row in (ROWS if consumer.runs else CONVERTER_ROWS)),
    ]
    if consumer.runs:
        lines.append(_out_of_bounds_row(judged))
    if left:
        lines += ["", f"{left} modules are still to be done."]
    lost = [entry for entry in judged if entry.is_lost]
    gained = [entry for entry in judged if entry.is_gained]
    due = [entry for entry in judged if entry.is_due_to_scatter]
    lines += ["", f"Gained: {len(gained)}. Lost: {len(lost)}. Failures left that are due to a scatter: {len(due)}."]
    lines += _listed("Lost", lost, lambda e: _told(e.converted))
    lines += _listed("Failures due to a scatter", due, lambda e: _told(e.converted))
    lines += _causes(judged)
    for result in ("wrong", "crashed", "timed out"):
        bad = [e for e in judged if e.converted is not None and e.converted.result == result]
        lines += _listed(f"Converted, {result}", bad, lambda e: f"{_told(e.converted)}; native: {_told(e.native)}")
    lines += _told_of_runs(judged)
    lines += _not_judged([entry for entry in entries if entry.native is None])
    return lines


def table_json(consumer: Consumer, settings: Mapping[str, Any], entries: Sequence[Entry], left: int) -> dict[str, Any]:
    """The same as plain data, with all entries."""
    judged = [entry for entry in entries if entry.native is not None]
    return {
        "consumer": consumer.name,
        "settings": dict(settings),
        "modules": len(entries),
        "left": left,
        "judged": len(judged),
        "native": dict(Counter(e.native.result for e in judged if e.native)),
        "converted": dict(Counter(e.converted.result for e in judged if e.converted)),
        "gained": [e.module for e in judged if e.is_gained],
        "lost": [e.module for e in judged if e.is_lost],
        "due_to_scatter": [e.module for e in judged if e.is_due_to_scatter],
        "entries": [entry.to_json() for entry in entries],
    }


def _row(result: str, judged: Sequence[Entry]) -> str:
    native = sum(1 for e in judged if e.native is not None and e.native.result == result)
    converted = sum(1 for e in judged if e.converted is not None and e.converted.result == result)
    return f"| {result} | {native} | {converted} |"


def _out_of_bounds_row(judged: Sequence[Entry]) -> str:
    def count(outcomes: Sequence[ConsumerOutcome | None]) -> int:
        return sum(1 for o in outcomes if o is not None and not o.ok and o.runs >= RIGHT_IN_RANGE)

    native, converted = count([e.native for e in judged]), count([e.converted for e in judged])
    return f"| of the failures, with positions out of bounds only | {native} | {converted} |"


def _causes(judged: Sequence[Entry]) -> list[str]:
    """What is refused, by the op that the consumer names."""
    native, converted = _refusals(judged, "native"), _refusals(judged, "converted")
    if not native and not converted:
        return []
    lines = ["", "| refused because of | native | converted | such as |", "| --- | ---: | ---: | --- |"]
    for cause in sorted({*native, *converted}, key=lambda c: (-len(converted[c]), -len(native[c]), c)):
        example = (converted[cause] or native[cause])[0]
        lines.append(f"| {cause} | {len(native[cause])} | {len(converted[cause])} | {example} |")
    return lines


class _ByCause(dict[str, list[str]]):
    def __missing__(self, _: str) -> list[str]:
        return []


def _refusals(judged: Sequence[Entry], which: str) -> _ByCause:
    found = _ByCause()
    for entry in judged:
        outcome: ConsumerOutcome | None = getattr(entry, which)
        if outcome is not None and outcome.result == "refused":
            cause = outcome.cause or f"{NOTHING_NAMED}: {_short(outcome.message)}"
            found[cause] = [*found[cause], entry.module]
    return found


def _told_of_runs(judged: Sequence[Entry]) -> list[str]:
    """How many runs of converted versions were others than the module's or left out, and what bounds say little."""
    lines: list[str] = []
    for word, told in (
        ("left out", "runs left out, as their values do not fit the converted version's narrower integers"),
        ("become their ends", "runs on the ends of the converted version's narrower integers, where values do not fit"),
        ("rounding alone", "notes of results that rounding alone moves by more than half, or makes no numbers"),
    ):
        found = [entry.module for entry in judged for note in entry.notes if word in note]
        if found:
            modules = list(dict.fromkeys(found))
            lines.append(f"- {len(found)} {told}, in {len(modules)} modules ({', '.join(modules[:MOST_NAMED])})")
    return ["", *lines] if lines else []


def _not_judged(entries: Sequence[Entry]) -> list[str]:
    """Why modules were not judged, the modules of each reason together."""
    reasons = Counter(_reason(entry) for entry in entries)
    if not reasons:
        return []
    lines = ["", f"Not judged: {len(entries)}", ""]
    for reason, count in reasons.most_common():
        example = next(e.module for e in entries if _reason(e) == reason)
        lines.append(f"- {count}: {reason} ({example})")
    return lines


def _reason(entry: Entry) -> str:
    """Why a module was not judged, without the type that differs from module to module."""
    return _short(entry.not_judged).split(" tensor<", 1)[0]


def _listed(title: str, entries: Sequence[Entry], told: Callable[[Entry], str]) -> list[str]:
    if not entries:
        return []
    lines = ["", f"{title}:", "", *(f"- {e.module}: {told(e)}" for e in entries[:MOST_LISTED])]
    return [*lines, f"- and {len(entries) - MOST_LISTED} more"] if len(entries) > MOST_LISTED else lines


def _told(outcome: ConsumerOutcome | None) -> str:
    if outcome is None:
        return "not measured"
    return outcome.result + (f": {_short(outcome.message)}" if outcome.message else "")


def _short(message: str) -> str:
    """A message as part of a line of Markdown."""
    return message.replace("|", "\\|").replace("\n", " ")[:160]
