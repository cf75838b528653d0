"""Where scatters stand, for a reader: the source line, and the layer of the model that the scope names.

One scatter is at "llama.py:259 layer 0"; alike ones in eighty layers are at "llama.py:259, 260 layers 0-79".
"""

import re
from collections.abc import Sequence
from itertools import groupby

from hlo_lower.report.alike import Group

LONGEST_PLACE = 36
CONTROL_FLOW = ("pjit", "while", "body", "cond", "closed_call", "checkpoint", "remat", "branch_0_fun", "branch_1_fun")


def where(group: Group) -> str:
    """The source lines and the layers of alike scatters."""
    lines = _lines([record.location for record in group.members])
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


def _lines(places: Sequence[str]) -> str:
    """ "llama.py:88"; of two lines "llama.py:88, 89", of more the first and the last, of several files the first."""
    distinct = list(dict.fromkeys(places))
    first = _shortened(distinct[0])
    if len(distinct) == 1:
        return first
    files = {place.rpartition(":")[0] for place in distinct}
    if len(files) > 1:
        return f"{first} and {len(distinct) - 1} more"
    last = distinct[-1].rpartition(":")[2]
    return f"{first}{',' if len(distinct) == 2 else ' ...'} {last}"


def _shortened(place: str) -> str:
    """A long place, without its middle: both the beginning of the file's name and the line stay."""
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
    return f"{distinct[0]} and {len(distinct) - 1} more" if distinct[0] else f"and {len(distinct) - 1} layers"


def _numbers(numbers: Sequence[int]) -> str:
    """ "0-79" where none is left out, "0, 2, 4" where they are few, else the ends."""
    ordered = sorted(numbers)
    if ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}-{ordered[-1]}"
    return ", ".join(map(str, ordered)) if len(ordered) <= 3 else f"{ordered[0]} ... {ordered[-1]}"
