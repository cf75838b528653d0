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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, pairwise
from typing import Any

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ops.names import CONCATENATE
from hlo_lower.ops.spec import RESHAPING

NEAR = 512
"""How many ops may stand between where a near value is made and where it is taken."""

LONGEST = 64
"""Most elements of a constant that are printed; of a longer one nothing is told but which one it is."""

_PLACES = 1 << 20
"""More than an op has operands and results."""

_COUNTED, _FAR = 1 << 36, 1 << 60
"""More than any distance to a near value, and more than that with a count."""

GATHERS = RESHAPING | {"func.return", CONCATENATE}
"""Ops that gather results, where they are the last ones of a block."""

_VALUE = re.compile(r"(%[\w$.#-]+)", re.ASCII)
_VALUE_OR_STRING = re.compile(r'("[^"]*"|%[\w$.#-]+)', re.ASCII)

_STATEMENT = re.compile(r"\n(?=  (?![ }^]|cond \{))")
"""Where the text of the next op begins; one with regions has several lines."""

_ELIDED = "__elided__"
"""What stands for the elements of a longer constant."""


@dataclass(eq=False)
class Listing:
    """A block of a function; its values are numbered, its arguments first, then what its ops make, in order."""

    operations: Sequence[mlir.RawOperation]  # the ops
    kinds: list[int]  # for each op a number, the same where the text is the same but for the values' names
    lines: list[int]  # for each op a number, the same where what it takes and makes is told in the same way as well
    all_taken: list[int]  # the values that ops take, one op behind the other, in the order of the text
    ends: list[int]  # for each op where in these its own end; one more in front
    starts: list[int]  # for each op the first value that it makes; one more behind
    places: list[int]  # for each value the place of the op that makes it; -1 of an argument
    is_near: list[bool]  # for each value whether it is near
    tail: int  # the first of the ops at the end that gather results

    def operands_of(self, place: int) -> list[int]:
        """The values that an op takes, in the order of the text."""
        return self.all_taken[self.ends[place] : self.ends[place + 1]]

    def results_of(self, place: int) -> range:
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
    """The entry block of a `func.func` and its ops; None where its text is not understood."""
    head, *texts = _STATEMENT.split(mlir.print_operation(function, longest=LONGEST).rstrip("}\n"))
    arguments = [name for name in _VALUE_OR_STRING.findall(head.rsplit("\n", 1)[-1]) if name[0] == "%"]
    return _Reader(arguments, texts, operations).listing() if len(texts) == len(operations) else None


class _Reader:
    """Reads the text of ops.

    Most are plain: one line, one result, no strings. These are read all at once, the others one by one.

    Attributes:
      operations: the ops.
      inner: values that are taken within regions.
      kinds, starts: as those of `Listing`.
      users, taken: which op takes which value, in the order of the text.
    """

    def __init__(self, arguments: Sequence[str], texts: Sequence[str], operations: Sequence[mlir.RawOperation]) -> None:
        self.operations = operations
        self.inner: list[int] = []
        is_line = np.array(['"' not in text and "\n" not in text for text in texts], bool)
        parts = _VALUE.split("\n".join(compress(texts, is_line)))
        names, lines = parts[1::2], "%".join(parts[::2]).split("\n")[: np.count_nonzero(is_line)]
        self._keys: dict[Hashable, int] = {line: number for number, line in enumerate(dict.fromkeys(lines))}
        each = np.array([self._keys[line] for line in lines], np.int64)
        widths = np.array([line.count("%") for line in dict.fromkeys(lines)], np.int64)[each]
        is_plain = np.array([line[:6] == "  % = " and _ELIDED not in line for line in dict.fromkeys(lines)], bool)[each]
        firsts, places = (np.cumsum(widths) - widths)[is_plain], np.flatnonzero(is_line)
        self.kinds = np.full(len(texts), -1)
        self.kinds[places[is_plain]] = each[is_plain]

        others = {place: _result_names(texts[place]) for place in np.flatnonzero(self.kinds < 0).tolist()}
        counts = np.ones(len(texts), np.int64)
        counts[list(others)] = [len(made) for made in others.values()]
        self.starts = len(arguments) + np.cumsum(np.insert(counts, 0, 0))
        results = zip(firsts.tolist(), self.starts[places[is_plain]].tolist(), strict=True)
        self._known = {name: number for number, name in enumerate(arguments)}
        self._known.update((names[first], value) for first, value in results)
        for place, made in others.items():
            self._known.update(zip(made, range(self.starts[place], self.starts[place + 1]), strict=True))

        is_taken = np.repeat(is_plain, widths)
        is_taken[firsts] = False
        users = [np.repeat(places, widths)[is_taken]]
        taken = [[self._known[name] for name in compress(names, is_taken.tolist())]]
        for place in others:
            taken.append(self._read(place, texts[place]))
            users.append(np.full(len(taken[-1]), place))
        self.users, self.taken = np.concatenate(users), np.concatenate(taken).astype(np.int64)
        order = np.argsort(self.users, kind="stable")
        self.users, self.taken = self.users[order], self.taken[order]

    def _read(self, place: int, text: str) -> list[int]:
        """Read the kind of an op that is not plain, and what it takes of the block.

        A name within a region that the block gives a value only later is one of the region's own; so are those that the
        block does not know. These become part of the kind, as strings do.
        """
        parts = _VALUE_OR_STRING.split(text[text.index(" = ") :] if text[:3] == "  %" else text)
        own, taken, start, key = dict[str, str](), list[int](), int(self.starts[place]), list[Hashable](parts[::2])
        is_inner = False
        for behind, name in zip(parts[::2], parts[1::2], strict=False):
            is_inner = is_inner or "\n" in behind  # the first line has the operands, those below it a region
            value = self._known.get(name, start)  # what is not known counts as made later
            if value < start:
                taken.append(value)
                key.append("%")
                self.inner += [value] if is_inner else []
            else:
                key.append(name if name[0] == '"' else own.setdefault(name, f"%{len(own)}"))
        if _ELIDED in text:
            key.append(place if is_inner else mlir.attribute_key(self.operations[place]))
        self.kinds[place] = self._keys.setdefault(tuple(key), len(self._keys))
        return taken

    def listing(self) -> Listing:
        """What was read."""
        starts, users, taken, tail = self.starts, self.users, self.taken, _tail(self.operations)
        ops = len(self.kinds)
        ends = np.searchsorted(users, np.arange(ops + 1))
        places = np.repeat(np.arange(-1, ops), np.diff(starts, prepend=0))
        values, before = np.arange(len(places)), slice(ends[tail])
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
        lines = _lines([(np.arange(ops), self.kinds), (users, told), (places[is_made], made[is_made])])
        taken_and_made = taken.tolist(), ends.tolist(), starts.tolist()
        kinds = self.kinds.tolist()
        return Listing(self.operations, kinds, lines, *taken_and_made, places.tolist(), is_near.tolist(), tail)


def _result_names(text: str) -> list[str]:
    """The names of an op's results ("%5 = ", "%5:2 = ", "%values, %indices = ")."""
    found: list[str] = []
    for one in text[2 : text.index(" = ")].split(", ") if text[:3] == "  %" else ():
        name, _, count = one.partition(":")
        found += [f"{name}#{number}" for number in range(int(count))] if count else [name]
    return found


def _lines(told: "Sequence[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]") -> list[int]:
    """A number for each op.

    Args:
      told: places of ops, and what is told of these: its kind; of what it takes where that is made, or first taken,
        counted from where it is taken, and of an argument how often, or of a far value which it is; of what it makes
        how often and how far off that is taken.
    """
    places, words = (np.concatenate(arrays) for arrays in zip(*told, strict=True))
    data = words[np.argsort(places, kind="stable")].tobytes()
    ends = [0, *(words.itemsize * np.cumsum(np.bincount(places))).tolist()]
    numbers: dict[bytes, int] = {}
    return [numbers.setdefault(data[first:end], len(numbers)) for first, end in pairwise(ends)]


def _tail(operations: Sequence[mlir.RawOperation]) -> int:
    """The first of the ops at the end of a block that gather results."""
    at = len(operations)
    while at and operations[at - 1].name in GATHERS:
        at -= 1
    return at
