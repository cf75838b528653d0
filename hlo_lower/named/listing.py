"""A block as it is printed: for each op what it is, and where what it takes stands, counted from where it stands.

Layers repeat. Ops of two layers that are the same, take the same and are taken by the same have one number here, which
is read off the text of the function: printing costs less than to ask the bindings for names, operands, attributes and
types of each op.

A value is near where all that take it stand within `NEAR` ops of where it is made (an argument: of where it is first
taken): it is told by how far off that is, so that the values of one layer are told as those of the next. Another value,
that many layers take, or that is taken within a region, is told by which one it is.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hlo_lower import mlir

NEAR = 512
"""How many ops may stand between where a near value is made and where it is taken."""

LONGEST = 64
"""Most elements of a constant that are printed; of a longer one nothing is told but which one it is."""

_PLACES = 1 << 20
"""More than an op has operands and results."""

_FAR = 1 << 48
"""More than any distance to a near value."""

_VALUE = re.compile(r"(%[\w$.-]+(?:#\d+)?)")
_VALUE_OR_STRING = re.compile(r'("[^"]*"|%[\w$.-]+(?:#\d+)?)')


@dataclass(eq=False)
class Listing:
    """A block of a function; its values are numbered, its arguments first.

    Attributes:
      kinds: for each op a number, the same where the text is the same but for the values' names.
      lines: for each op a number, the same where what it takes and makes is told in the same way as well.
      taken: for each op the values that it takes, in the order of the text.
      made: for each op the values that it makes.
      places: for each value the place of the op that makes it; -1 of an argument.
      is_near: for each value whether it is near.
    """

    kinds: list[int]
    lines: list[int]
    taken: list[list[int]]
    made: list[range]
    places: list[int]
    is_near: list[bool]

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """For each value the places of the ops that take it."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, values in enumerate(self.taken):
            for value in values:
                found[value].append(place)
        return found


def listing_of(function: mlir.RawOperation, operations: int) -> Listing | None:
    """The entry block of a function; None where its text is not understood.

    Args:
      function: a `func.func` with a body.
      operations: how many ops the block has.
    """
    lines = mlir.print_operation(function, longest=LONGEST).rstrip().split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("func.func"))
    reader = _Reader([name for name in _VALUE_OR_STRING.findall(lines[start]) if name[0] == "%"])
    for text in _statements(lines[start + 1 : -1]):
        reader.read(text)
    return reader.listing() if len(reader.kinds) == operations else None


def _statements(lines: Sequence[str]) -> Iterator[str]:
    """The text of each op; one with regions has several lines."""
    current = ""
    for line in lines:
        if line[2:3] in " }^" or line.startswith("  cond {"):
            current += "\n" + line
            continue
        if current:
            yield current
        current = line
    yield current


class _Reader:
    """Reads the text of ops, one after the other.

    Attributes:
      known: values by their names.
      first, last: for each value where it is made, or first taken, and where it is last taken: places of ops, times
        `_PLACES`, plus the place in the op.
      count: how often each is taken.
      inner: values that are taken within regions.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.known = {name: number for number, name in enumerate(arguments)}
        self.first, self.last = [-1] * len(arguments), [-1] * len(arguments)
        self.count = [0] * len(arguments)
        self.inner = set[int]()
        self.kinds: list[int] = []
        self.taken: list[list[int]] = []
        self.made: list[range] = []
        self._numbers: dict[Hashable, int] = {}

    def read(self, text: str) -> None:
        """Read the text of one op."""
        parts = (_VALUE_OR_STRING if '"' in text else _VALUE).split(text)
        is_named = parts[0] == "  " and len(parts) > 1 and parts[1][0] == "%"
        names, key = parts[3 if is_named else 1 :: 2], parts[::2]
        try:
            taken = [self.known[name] for name in names]
        except KeyError:
            taken = self._partly_known(text, names, key)
        number, count, last, first = len(self.kinds) * _PLACES, self.count, self.last, self.first
        for value in taken:
            count[value] += 1
            last[value] = number
            if first[value] < 0:
                first[value] = number
            number += 1
        self._make(parts, is_named)
        self.kinds.append(self._numbers.setdefault(tuple(key), len(self._numbers)))
        self.taken.append(taken)

    def _partly_known(self, text: str, names: list[str], key: list[str]) -> list[int]:
        """The values of the block in a text with strings, or with values of regions; these become part of the key."""
        taken, own = list[int](), dict[str, str]()
        for name in names:
            value = self.known.get(name)
            key.append("%" if value is not None else name if name[0] == '"' else own.setdefault(name, f"%{len(own)}"))
            taken += () if value is None else (value,)
        if "\n" in text:
            self.inner.update(taken)
        if "__elided__" in text:
            key.append(str(len(self.kinds)))
        return taken

    def _make(self, parts: list[str], is_named: bool) -> None:
        start, place = len(self.first), len(self.kinds) * _PLACES
        count = 0 if not is_named else 1 if parts[2][0] == " " else int(parts[2][1 : parts[2].index(" ")])
        if count == 1:
            self.known[parts[1]] = start
        for number in range(count if count > 1 else 0):
            self.known[f"{parts[1]}#{number}"] = start + number
        self.first += range(place, place + count)
        self.last += [-1] * count
        self.count += [0] * count
        self.made.append(range(start, start + count))

    def listing(self) -> Listing:
        """What was read."""
        first, reach = self.first, NEAR * _PLACES
        is_near = [end - start <= reach for start, end in zip(first, self.last, strict=True)]
        for value in self.inner:
            is_near[value] = False
        arguments = self.made[0].start
        places = [-1] * arguments + [start // _PLACES for start in first[arguments:]]
        return Listing(self.kinds, self._lines(is_near, arguments), self.taken, self.made, places, is_near)

    def _lines(self, is_near: list[bool], arguments: int) -> list[int]:
        """A number for each op: a near value is told by how far off it is made or first taken, even of arguments."""
        far = [_FAR + value for value in range(len(is_near))]
        starts = [2 * start + (value >= arguments) for value, start in enumerate(self.first)]
        numbers: dict[Hashable, int] = {}
        lines: list[int] = []
        for place, (kind, taken, made) in enumerate(zip(self.kinds, self.taken, self.made, strict=True)):
            here = place * _PLACES
            key = [kind]
            key += [here + here - starts[value] if is_near[value] else far[value] for value in taken]
            for value in made:
                key += (self.count[value], self.last[value] - here) if is_near[value] else (far[value], 0)
            lines.append(numbers.setdefault(tuple(key), len(numbers)))
        return lines
