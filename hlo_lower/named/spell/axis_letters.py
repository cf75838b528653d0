"""The layout of an attention, read: `"b(nq)1h,bnkh,bnkv,1k->bnq1v"` and the sizes of each letter."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value

SHARED, ROWS, KEYS, ELEMENTS, VALUES = "bncd", "qgpr", "klm", "hij", "vwx"
"""Letters by their roles; see `hlo_lower.named.match.attention`."""

_AXIS = re.compile(r"\(([a-z]+)\)|([a-z1])")


@dataclass(frozen=True)
class AxisLetters:
    """The axes of a tensor as letters: "b(nq)1h" is ("b", "nq", "", "h")."""

    axes: tuple[str, ...]

    @property
    def letters(self) -> str:
        """All letters, in order."""
        return "".join(self.axes)


@dataclass(frozen=True)
class Layout:
    """A layout: of query, key, value and masks; of the result; and how long each letter's axis is."""

    operands: tuple[AxisLetters, ...]
    result: AxisLetters
    sizes: dict[str, int]

    def size(self, letters: str) -> int:
        """How many places some axes have together."""
        return prod(self.sizes[letter] for letter in letters)


def read_layout(text: str, shapes: Sequence[Sequence[int]], result: Sequence[int]) -> Layout | None:
    """Read a layout; None where it has letters without a role, or sizes that do not follow from the operands'
    shapes."""
    tensors = read_tensors(text)
    if len(tensors) != len(shapes) + 1:
        return None
    sizes: dict[str, int] = {}
    pairs = [
        (axis, size)
        for tensor, shape in zip(tensors, (*shapes, result), strict=True)
        for axis, size in zip(tensor.axes, shape, strict=False)
    ]
    if any(len(t.axes) != len(s) for t, s in zip(tensors, (*shapes, result), strict=True)):
        return None
    for _ in range(4):  # a product gives one of its letters once the others are known
        for axis, size in pairs:
            unknown = [letter for letter in axis if letter not in sizes]
            if len(unknown) == 1:
                rest = prod(sizes[letter] for letter in axis if letter in sizes)
                if not rest or size % rest:
                    return None
                sizes[unknown[0]] = size // rest
    if any(letter not in sizes for axis, _ in pairs for letter in axis):
        return None
    if any(prod(sizes[letter] for letter in axis) != size for axis, size in pairs):
        return None
    return Layout(tuple(tensors[:-1]), tensors[-1], sizes)


def read_tensors(text: str) -> tuple[AxisLetters, ...]:
    """The tensors of a layout, the result last; () where there are letters without a role."""
    left, _, right = text.partition("->")
    read = [_letters(part) for part in (*left.split(","), right)]
    return tuple(one for one in read if one is not None) if None not in read else ()


def _letters(text: str) -> AxisLetters | None:
    axes, at = list[str](), 0
    while at < len(text):
        found = _AXIS.match(text, at)
        if found is None:
            return None
        axes.append(found[1] or found[2].replace("1", ""))
        at = found.end()
    letters = "".join(axes)
    known = SHARED + ROWS + KEYS + ELEMENTS + VALUES
    return AxisLetters(tuple(axes)) if set(letters) <= set(known) and len(set(letters)) == len(letters) else None


@dataclass(frozen=True)
class Move:
    """A tensor in another order of axes: split by letters, transposed, joined."""

    shape: tuple[int, ...]  # before
    split: tuple[int, ...]  # by letters, in the order that it has
    order: tuple[int, ...]  # of these, the places of the transpose
    joined: tuple[int, ...]  # the shape behind

    @classmethod
    def of(cls, layout: Layout, axes: AxisLetters, wanted: Sequence[str], shape: Sequence[int]) -> "Move":
        letters = axes.letters
        order = tuple(letters.index(letter) for axis in wanted for letter in axis)
        sizes = tuple(layout.sizes[letter] for letter in letters)
        return cls(tuple(shape), sizes, order, tuple(layout.size(axis) for axis in wanted))

    @property
    def is_reshape(self) -> bool:
        """Whether nothing is moved: axes of one place lie anywhere."""
        real = [place for place in self.order if self.split[place] != 1]
        return real == sorted(real)

    def __call__(self, build: Builder, value: Value) -> Value:
        if self.is_reshape:
            return build.reshape(value, self.joined)
        return build.reshape(build.transpose(build.reshape(value, self.split), self.order), self.joined)

    def back(self, build: Builder, value: Value) -> Value:
        """The inverse."""
        if self.is_reshape:
            return build.reshape(value, self.shape)
        moved = build.reshape(value, [self.split[place] for place in self.order])
        return build.reshape(build.transpose(moved, list(np.argsort(self.order))), self.shape)
