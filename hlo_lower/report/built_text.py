"""What was built for each scatter, read off the text of the lowered module: its ops have the scatter's location.

    %0 = stablehlo.dynamic_update_slice ... loc(#loc7)        #loc7 = loc("decode.mlir":5:10)

Source ops that share a line and a scope with a scatter cannot be told from what was built for it.
"""

import re
from collections.abc import Mapping, Sequence

from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.report.place import alike, split_place

MOST_LINES = 40

LONGEST = 64
"""Elements of a constant that are shown; of a longer one that it is `__elided__`."""

OWN = "-"
"""What a module that was parsed is called in its own locations."""

LOCATION = re.compile(r' loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*"|\([^()]*\))*\))*\)')
"""A location at the end of a line, or of an argument: "loc(#loc3)", 'loc("a.py":3:1)', "loc(unknown)"."""


def built_texts(text: str, records: Sequence[ScatterRecord]) -> Mapping[int, tuple[str, ...]]:
    """The lines of a lowered module, printed with locations, that were built for scatters, by their number: for the
    first of those that are alike."""
    lines = text.split("\n")
    places, owner = _places(lines), _owners(lines)
    by_location: dict[str, list[int]] = {}
    for number, location in enumerate(owner):
        if location:
            by_location.setdefault(location, []).append(number)
    named = {location: _resolve(location, places) for location in by_location}
    by_place: dict[tuple[str, str], list[int]] = {}
    for location, numbers in by_location.items():
        for key in _keys(named[location]):
            by_place.setdefault(key, []).extend(numbers)
    first: dict[object, int] = {}
    found: dict[int, tuple[str, ...]] = {}
    for record in records:
        if record.rule and first.setdefault(alike(record), record.number) == record.number:
            place = record.location if record.source else f"{OWN}:{split_place(record.location)[1]}"
            numbers = sorted(by_place.get((place, record.scope), ()))
            if numbers:
                found[record.number] = _trim_lines([lines[number] for number in numbers])
    return found


def _places(lines: Sequence[str]) -> dict[str, str]:
    """Locations by their alias: "#loc7" is '"decode.mlir":5:10'."""
    pairs = (re.match(r"(#loc\d*) = loc\((.*)\)$", line) for line in lines if line.startswith("#loc"))
    return {match[1]: match[2] for match in pairs if match}


def _owners(lines: Sequence[str]) -> list[str]:
    """For each line the location of the outermost op that it is part of, functions and the module aside."""
    owner = [""] * len(lines)
    opened: list[int] = []
    head = None
    for number, line in enumerate(lines):
        if line.startswith("#loc"):
            continue
        bare = LOCATION.sub("", line).strip()
        found = LOCATION.findall(line)
        location = found[-1][5:-1] if found and line.rstrip().endswith(found[-1]) else ""
        first = number
        if bare.startswith("}") and opened:
            first = opened.pop()
        if bare.endswith("{"):
            opened.append(first if first != number else number if head is None else head)
            head = None
        elif location:
            is_op = not re.match(r"\s*(func\.func|module)\b", lines[first])
            owner[first : number + 1] = [location if is_op else own for own in owner[first : number + 1]]
            head = None
        elif bare and not bare.startswith(("}", "^", "#")):
            head = number
    return owner


def _resolve(location: str, places: Mapping[str, str]) -> str:
    for _ in range(8):
        if "#loc" not in location:
            break
        location = re.sub(r"#loc\d*\b", lambda match: places.get(match[0], "?"), location)
    return location


def _keys(location: str) -> list[tuple[str, str]]:
    """Pairs of a place and a scope, as a record has them, that a location may stand for."""
    found = re.findall(r'"([^"]*)":(\d+)', location)
    scopes = [name for name in re.findall(r'"([^"]*)"(?!:\d)', location) if "/" in name]
    return [(f"{file.split('/')[-1]}:{line}", scopes[0] if scopes else "") for file, line in found[:1]]


def _trim_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The first lines, without locations and without their common indent."""
    bare = [LOCATION.sub("", line) for line in lines]
    indent = min(len(line) - len(line.lstrip()) for line in bare)
    told = tuple(line[indent:] for line in bare[:MOST_LINES])
    return (*told, "...") if len(bare) > MOST_LINES else told
