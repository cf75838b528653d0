"""Sizes as the command line gives them, and the error of sizes that cannot be given to a module."""

import re


class SizesError(ValueError):
    """Sizes that cannot be given to a module: what is wrong, and what the module knows of its shapes."""

    def __init__(self, what: str, facts: str = "", next_step: str = "") -> None:
        super().__init__(what)
        self.what, self.facts, self.next_step = what, facts, next_step


MAX_DIGITS = 40
"""Digits of a size on the command line: twice as many as any size has."""

A_SIZE = "a size is a whole number from 0 to 2^63 - 1"


def _short(text: str) -> str:
    """The beginning of what a user wrote."""
    return text if len(text) <= MAX_DIGITS else f"{text[:MAX_DIGITS]}..."


def parse_sizes(text: str) -> dict[str, int]:
    """Sizes as the command line gives them: "b=4,s=16", "arg1.0=7" for a dim, "arg0=7" for an integer argument.

    Raises:
      SizesError: a part is no NAME=SIZE, or a name comes twice.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*(?:\.\d+)?)\s*=\s*(\d+)\s*", part)
        if match is None:
            raise SizesError(f"{_short(part.strip())!r} is no NAME=SIZE", next_step="write --bind b=4,s=16")
        if len(match[2]) > MAX_DIGITS:
            raise SizesError(f"{_short(match[1])} has {len(match[2]):,} digits and is no size", next_step=A_SIZE)
        if match[1] in sizes:
            raise SizesError(f"{match[1]} is bound twice", next_step="give each name one size")
        sizes[match[1]] = int(match[2])
    return sizes
