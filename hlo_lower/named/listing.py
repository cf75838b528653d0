"""A block as it is printed: for each op what it is, and where what it takes stands, counted from where it stands.

Layers repeat. Ops of two layers that are the same, take the same and are taken by the same have one number here, which
is read off the text of the function: printing costs less than to ask the bindings for names, operands, attributes and
types of each op.

A value is near where all that take it stand within `NEAR` ops of where it is made (an argument: of where it is first
taken): it is told by how far off that is, so that the values of one layer are told as those of the next. Another value,
that many layers take, or that is taken within a region, is told by which one it is.

What only gathers results at the end of the block, as a decode step does with the caches of all layers, makes no value
far: of a value it is told whether the end of the block takes it, and whether another of these does.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from hlo_lower import mlir

NEAR = 512
"""How many ops may stand between where a near value is made and where it is taken."""

LONGEST = 64
"""Most elements of a constant that are printed; of a longer one nothing is told but which one it is."""

_PLACES = 1 << 20
"""More than an op has operands and results."""

_COUNTED, _FAR = 1 << 36, 1 << 60
"""More than any distance to a near value, and more than that with a count."""

GATHERS = frozenset({"func.return", *(f"stablehlo.{op}" for op in ("concatenate", "reshape", "broadcast_in_dim"))})
"""Ops that gather results, where they are the last ones of a block."""

_VALUE = re.compile(r"(%[\w$.-]+(?:#\d+)?)")
_VALUE_OR_STRING = re.compile(r'("[^"]*"|%[\w$.-]+(?:#\d+)?)')


@dataclass(eq=False)
class Listing:
    """A block of a function; its values are numbered, its arguments first, then what its ops make, in order.

    Attributes:
      operations: the ops.
      kinds: for each op a number, the same where the text is the same but for the values' names.
      lines: for each op a number, the same where what it takes and makes is told in the same way as well.
      all_taken: the values that ops take, one op behind the other, in the order of the text.
      ends: for each op where in these its own end; one more in front.
      starts: for each op the first value that it makes; one more behind.
      places: for each value the place of the op that makes it; -1 of an argument.
      is_near: for each value whether it is near.
      tail: the first of the ops at the end that gather results.
    """

    operations: Sequence[mlir.RawOperation]
    kinds: list[int]
    lines: list[int]
    all_taken: list[int]
    ends: list[int]
    starts: list[int]
    places: list[int]
    is_near: list[bool]
    tail: int

    def taken(self, place: int) -> list[int]:
        """The values that an op takes."""
        return self.all_taken[self.ends[place] : self.ends[place + 1]]

    def made(self, place: int) -> range:
        """The values that an op makes."""
        return range(self.starts[place], self.starts[place + 1])

    def users(self, value: int) -> list[int]:
        """The places of the ops before the tail that take a value, ascending."""
        users, ends = self._users
        return users[ends[value] : ends[value + 1]].tolist()

    @cached_property
    def _users(self) -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]":
        """The users of all values, one value behind the other, and where those of each begin."""
        taken = np.array(self.all_taken[: self.ends[self.tail]], np.int64)
        users = np.repeat(np.arange(self.tail), np.diff(self.ends[: self.tail + 1]))[np.argsort(taken, kind="stable")]
        return users, np.cumsum([0, *np.bincount(taken, minlength=len(self.places))])


def listing_of(function: mlir.RawOperation, operations: Sequence[mlir.RawOperation]) -> Listing | None:
    """The entry block of a function; None where its text is not understood.

    Args:
      function: a `func.func` with a body.
      operations: the ops of the block.
    """
    lines = mlir.print_operation(function, longest=LONGEST).rstrip().split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("func.func"))
    reader = _Reader([name for name in _VALUE_OR_STRING.findall(lines[start]) if name[0] == "%"])
    reader.read_all(list(_statements(lines[start + 1 : -1])))
    return reader.listing(operations) if len(reader.kinds) == len(operations) else None


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
    """Reads the text of ops, one after the other; attributes as those of `Listing`.

    Attributes:
      known: values by their names.
      inner: values that are taken within regions.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.known = {name: number for number, name in enumerate(arguments)}
        self.inner: list[int] = []
        self.kinds: list[int] = []
        self.all_taken: list[int] = []
        self.ends, self.starts = [0], [len(arguments)]
        self._numbers: dict[str | tuple[str, ...], int] = {}

    def read_all(self, texts: Sequence[str]) -> None:
        """Read the text of all ops; most have no strings and no regions: names in these are looked for at once."""
        are_simple = ['"' not in text and "\n" not in text for text in texts]
        together = "\n".join(compress(texts, are_simple))
        names, kinds = _VALUE.findall(together), _VALUE.sub("%", together).split("\n")
        known, taken, ends, starts, numbers = self.known, self.all_taken, self.ends, self.starts, self._numbers
        numbered, at, value = iter(kinds), 0, starts[-1]
        for text, is_simple in zip(texts, are_simple, strict=True):
            kind = next(numbered) if is_simple else ""
            end = at + kind.count("%")
            if kind[:6] == "  % = ":
                known[names[at]] = value
                at, value = at + 1, value + 1
            elif not is_simple or kind[:3] == "  %":
                self._read(text)
                at, value = end, starts[-1]
                continue
            starts.append(value)
            taken += [known[name] for name in names[at:end]]
            at = end
            ends.append(len(taken))
            self.kinds.append(numbers.setdefault(kind, len(numbers)))

    def _read(self, text: str) -> None:
        """Read the text of one op with strings, regions, or several results."""
        parts = _VALUE_OR_STRING.split(text)
        is_named = parts[0] == "  " and len(parts) > 1 and parts[1][0] == "%"
        names, key = parts[self._name(parts) if is_named else 1 :: 2], parts[::2]
        if not is_named:
            self.starts.append(self.starts[-1])
        self._take_known(text, names, key)
        self.ends.append(len(self.all_taken))
        self.kinds.append(self._numbers.setdefault(tuple(key), len(self._numbers)))

    def _name(self, parts: list[str]) -> int:
        """Name what an op makes ("%5 = ", "%5:2 = ", "%values, %indices = "); where in its text the next name is."""
        at, value = 1, self.starts[-1]
        while True:
            name, behind = parts[at], parts[at + 1]
            at += 2
            if behind[0] == ":":
                count = int(behind[1:].split(" ", 1)[0].rstrip(","))
                self.known.update((f"{name}#{number}", value + number) for number in range(count))
                value += count
            else:
                self.known[name] = value
                value += 1
            if behind[-2:] != ", " or " = " in behind:
                self.starts.append(value)
                return at

    def _take_known(self, text: str, names: list[str], key: list[str]) -> None:
        """Take the values of the block in a text with strings or regions; the other names become part of the key."""
        own: dict[str, str] = {}
        taken = list[int]()
        for name in names:
            value = self.known.get(name)
            if value is not None:
                taken.append(value)
                key.append("%")
            else:
                key.append(name if name[0] == '"' else own.setdefault(name, f"%{len(own)}"))
        self.all_taken += taken
        head = text.find("\n")
        if head > 0:  # the first line has the operands, those behind it a region
            self.inner += [self.known[name] for name in _VALUE.findall(text, head) if name in self.known]
        if "__elided__" in text:
            key.append(str(len(self.kinds)))

    def listing(self, operations: Sequence[mlir.RawOperation]) -> Listing:
        """What was read."""
        starts, ends, taken = np.array(self.starts), np.array(self.ends), np.array(self.all_taken, np.int64)
        ops, tail = len(self.kinds), _tail(operations)
        places = np.repeat(np.arange(-1, ops), np.diff(starts, prepend=0))
        users, values = np.repeat(np.arange(ops), np.diff(ends)), np.arange(len(places))
        before = slice(ends[tail])
        last, is_made = places.copy(), places >= 0
        np.maximum.at(last, taken[before], users[before])
        first = np.where(is_made, places * _PLACES + values - starts[places], _FAR)
        np.minimum.at(first, taken[before], users[before] * _PLACES + (np.arange(len(taken)) - ends[users])[before])
        is_near = last - first // _PLACES <= NEAR
        is_near[self.inner] = False
        is_gathered, is_returned = np.zeros((2, len(places)), bool)
        is_gathered[taken[ends[tail] : ends[-2]]] = True
        is_returned[taken[ends[-2] :]] = True
        count = 4 * np.bincount(taken, minlength=len(places)) + 2 * is_returned + is_gathered
        base = 2 * first + is_made - np.where(is_made, 0, count * _COUNTED)
        told = np.where(is_near[taken], 2 * _PLACES * users - base[taken], _FAR + taken)
        made = np.where(is_near, count * _PLACES + last - places, _FAR + values)
        lines = self._lines(told.tolist(), made.tolist())
        taken_and_made = self.all_taken, self.ends, self.starts
        return Listing(operations, self.kinds, lines, *taken_and_made, places.tolist(), is_near.tolist(), tail)

    def _lines(self, told: list[int], made: list[int]) -> list[int]:
        """A number for each op.

        Args:
          told: of all that is taken, how it is told: where it is made, or first taken, counted from where it is taken,
            and of an argument how often; of a far value which it is.
          made: of all values how often and how far off they are taken.
        """
        numbers: dict[tuple[int, ...], int] = {}
        ends, starts = self.ends, self.starts
        return [
            numbers.setdefault((kind, *told[ends[n] : ends[n + 1]], *made[starts[n] : starts[n + 1]]), len(numbers))
            for n, kind in enumerate(self.kinds)
        ]


def _tail(operations: Sequence[mlir.RawOperation]) -> int:
    """The first of the ops at the end of a block that gather results."""
    at = len(operations)
    while at and operations[at - 1].name in GATHERS:
        at -= 1
    return at
