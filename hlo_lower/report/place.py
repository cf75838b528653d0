"""Where scatters stand, for a reader: the source line, and the layer of the model that the scope names.

One scatter is at "llama.py:259 layer 0"; alike ones in eighty layers are at "llama.py:259, 260 layers 0-79". A module
without source locations is told by its own lines, "line 162": its name stands above.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath

from hlo_lower.base.short_forms import listed
from hlo_lower.facts.scatter.record import ScatterRecord


@dataclass(frozen=True)
class Group:
    """Alike scatters: they agree in everything but where they stand. The first one speaks for all."""

    members: tuple[ScatterRecord, ...]

    @property
    def first(self) -> ScatterRecord:
        """The one that comes first in the program."""
        return self.members[0]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.members)


def fold(records: tuple[ScatterRecord, ...], *, show_all: bool = False) -> list[Group]:
    """Group alike scatters, in the order of the first of each group; each alone with show_all."""
    if show_all:
        return [Group((record,)) for record in records]
    groups: dict[object, list[ScatterRecord]] = {}
    for record in records:
        groups.setdefault(alike(record), []).append(record)
    return [Group(tuple(members)) for members in groups.values()]


def alike(record: ScatterRecord) -> object:
    """What alike scatters agree in: all but the number and the places (also those within evidence and prose)."""
    r = record
    return (
        (r.file, r.kind, r.subset, r.writes, r.combiner, r.dtype, r.oob, r.in_bounds, r.bounds, r.unique, r.rule),
        (r.operand_shape, r.indices_shape, r.updates_shape),
        tuple((fact.name, fact.value) for fact in r.facts),
        tuple(rejection.rule for rejection in r.why_not),
    )


def hidden_line(groups: list[Group]) -> str:
    """ "158 more alike (--all)", or "" where nothing is folded."""
    hidden = sum(group.count - 1 for group in groups)
    return f"... {hidden:,} more alike (--all)" if hidden else ""


LONGEST_PLACE = 32
CONTROL_FLOW = ("pjit", "while", "body", "cond", "closed_call", "checkpoint", "remat", "branch_0_fun", "branch_1_fun")


EXPORT_LOCATIONS = "export again with as_text(debug_info=True)"
"""How a module without source locations gets them."""


def is_unlocated(record: ScatterRecord) -> bool:
    """Whether the place of a scatter is a line of the module itself, which names no source."""
    return split_place(record.location)[0] == (PurePath(record.file).name or record.file)


def where(group: Group) -> str:
    """The source lines and the layers of alike scatters."""
    lines = _lines([record.location for record in group.members], group.first.file)
    layers = _layers([scope_layer(record.scope) for record in group.members])
    return f"{lines} {layers}" if layers else lines


def scope_layer(scope: str) -> str:
    """What a scope says about the place in the model: its names without the transforms around and the op at its end.

    "jit(decode)/layer_0/attention/scatter" gives "layer 0/attention"; repeats and all but the last two are left out.
    """
    names = [name for name in scope.split("/") if name and "(" not in name and ")" not in name]
    if names and names[-1].startswith("scatter"):
        names.pop()
    plain = [name for name, _ in groupby(names) if name not in CONTROL_FLOW]
    return "/".join(re.sub(r"^(\D+)[_.](\d+)$", r"\1 \2", name) for name in plain[-2:])


def _lines(places: Sequence[str], module: str) -> str:
    """The file and its lines: "llama.py:88, 89", of more than two the ends; "line 88" of the module itself."""
    distinct = list(dict.fromkeys(places))
    files, lines = zip(*(split_place(place) for place in distinct), strict=True)
    if len(set(files)) > 1 or not all(lines):
        return listed([*map(_shorten, distinct)], 1)
    shown = f"{lines[0]} ... {lines[-1]}" if len(lines) > 2 else ", ".join(lines)
    if files[0] == (PurePath(module).name or module):
        return f"line {shown}" if len(lines) == 1 else f"lines {shown}"
    return f"{_shorten(files[0])}:{shown}"


def split_place(place: str) -> tuple[str, str]:
    """File and line; no line where the place has none."""
    file, _, line = place.rpartition(":")
    return (file, line) if line.isdecimal() else (place, "")


def _shorten(place: str) -> str:
    if len(place) <= LONGEST_PLACE:
        return place
    tail = place[-(LONGEST_PLACE // 2) :]
    return f"{place[: LONGEST_PLACE - len(tail) - 3]}...{tail}"


def _layers(layers: Sequence[str]) -> str:
    """ "layer 0"; of several that differ in one number alone "layers 0-79"; else the first and how many more."""
    distinct = list(dict.fromkeys(layers))
    if len(distinct) == 1:
        return distinct[0]
    matches = [re.fullmatch(r"(.*?)( )(\d+)(/.*)?", layer) for layer in distinct]
    found = [match for match in matches if match is not None]
    if len(found) == len(distinct) and len({(match[1], match[4]) for match in found}) == 1:
        return f"{found[0][1]}s {_numbers([int(match[3]) for match in found])}{found[0][4] or ''}"
    return listed(distinct, 1) if distinct[0] else f"and {len(distinct) - 1} layers"


def _numbers(numbers: Sequence[int]) -> str:
    """ "0-79" where none is left out, "0, 2, 4" where they are few, else the ends."""
    ordered = sorted(numbers)
    if ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}-{ordered[-1]}"
    return ", ".join(map(str, ordered)) if len(ordered) <= 3 else f"{ordered[0]} ... {ordered[-1]}"
