"""Sizes as the command line gives them, and the error of sizes that cannot be given to a module."""

import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import SupportsIndex, cast


class SizesError(ValueError):
    """Sizes that cannot be given to a module: what is wrong, and what the module knows of its shapes."""

    def __init__(self, what: str, facts: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what, self.facts, self.next_step = what, facts, next_step


MAX_DIGITS = 40
"""Digits of a size on the command line: twice as many as any size has."""

LIMIT = 1 << 63
"""What every size is below."""

A_SIZE = "a size is a whole number from 0 to 2^63 - 1"


def shorten(text: str) -> str:
    """The beginning of what a user wrote."""
    return text if len(text) <= MAX_DIGITS else f"{text[:MAX_DIGITS]}..."


def named_sizes(sizes: object) -> dict[str, int]:
    """Sizes as a caller gives them, as a dict: whatever Python indexes with is a number of int.

    What is not a whole number stays as it is: what a name stands for tells which numbers it may have.

    Raises:
      SizesError: it is not a mapping, or a name is not text.
    """
    if not isinstance(sizes, Mapping):
        raise SizesError(
            f"{shorten(repr(sizes))} is not a mapping of names to sizes", next_step='write {"b": 4, "s": 16}'
        )
    found: dict[str, int] = {}
    for name, size in cast(Mapping[object, object], sizes).items():
        if not isinstance(name, str):
            raise SizesError(f"{shorten(repr(name))} is not a name", next_step='write {"b": 4, "s": 16}')
        found[name] = cast(int, size)
        if hasattr(size, "__index__") and not isinstance(size, bool):
            with suppress(TypeError):  # an array of several numbers has the method, and no number
                found[name] = operator.index(cast(SupportsIndex, size))
    return found


def without_places(message: str) -> str:
    """An assertion's message without the places ("{0}") where a size was to stand and none was put."""
    return re.sub(r" \(= \{\d+\}\)", "", message)


def parse_sizes(text: str) -> dict[str, int]:
    """Sizes as the command line gives them: "b=4,s=16", "arg1.0=7" for a dim, "arg0=-7" for an integer argument.

    Raises:
      SizesError: a part is not a NAME=SIZE, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*(?:\.\d+)?)\s*=\s*(-?\d+)\s*", part, re.ASCII)
        if match is None:
            raise SizesError(f"{shorten(part.strip())!r} is not a NAME=SIZE", next_step="write --bind b=4,s=16")
        digits = len(match[2].lstrip("-"))
        if digits > MAX_DIGITS:
            raise SizesError(f"{shorten(match[1])} has {digits:,} digits and is not a size", next_step=A_SIZE)
        if match[1] in sizes:
            raise SizesError(f"{match[1]} is bound twice", next_step="give each name one size")
        sizes[match[1]] = int(match[2])
    return sizes
