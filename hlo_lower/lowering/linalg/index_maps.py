"""Indexing maps of linalg, read and written: which element of an operand an iteration touches.

    affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2 + d3, d2)>

An index is a sum of dims, each with a factor and in the order of the dims; an operand's map is a tuple of those.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from hlo_lower.ir import mlir

Index: TypeAlias = tuple[tuple[int, int], ...]
"""An index: (dim, factor) for each dim of the sum."""

IndexMap: TypeAlias = tuple[Index, ...]

_TERM = re.compile(r"d(\d+)(?: \* (\d+))?")


def read_maps(attribute: mlir.RawAttribute) -> tuple[IndexMap, ...] | None:
    """The maps of an array of them; None where an index is another kind of expression."""
    maps = [_read(str(one)) for one in mlir.entries_in(attribute)]
    return None if None in maps else tuple(one for one in maps if one is not None)


def _read(text: str) -> IndexMap | None:
    """One map: "affine_map<(d0, d1) -> (d1, d0 * 2)>"."""
    inner = text.split(" -> (", 1)[1].removesuffix(")>") if " -> (" in text else None
    if inner is None:
        return None
    indices: list[Index] = []
    for told in inner.split(", ") if inner else ():
        terms = [_TERM.fullmatch(term) for term in told.split(" + ")]
        if None in terms:
            return None
        indices.append(tuple((int(term[1]), int(term[2] or 1)) for term in terms if term is not None))
    return tuple(indices)


def dims(*numbers: int) -> IndexMap:
    """The map of an operand whose axes are these dims."""
    return tuple(((number, 1),) for number in numbers)


def maps_attribute(rank: int, maps: Sequence[IndexMap]) -> mlir.RawAttribute:
    """The attribute of the maps of operands, from so many dims."""
    given = ", ".join(f"d{number}" for number in range(rank))
    told = (", ".join(" + ".join(map(_term, index)) for index in one) for one in maps)
    return mlir.parse_attribute("[" + ", ".join(f"affine_map<({given}) -> ({indices})>" for indices in told) + "]")


def _term(term: tuple[int, int]) -> str:
    return f"d{term[0]}" if term[1] == 1 else f"d{term[0]} * {term[1]}"


def iterators_attribute(rank: int, output: IndexMap) -> mlir.RawAttribute:
    """The attribute of the kinds of dims: those that no output has are reduced."""
    kept = {dim for index in output for dim, _ in index}
    kinds = ("parallel" if dim in kept else "reduction" for dim in range(rank))
    return mlir.parse_attribute("[" + ", ".join(f"#linalg.iterator_type<{kind}>" for kind in kinds) + "]")


def rank_of(maps: Sequence[IndexMap]) -> int:
    """How many dims maps are over, which all of them occur in one."""
    return 1 + max((dim for one in maps for index in one for dim, _ in index), default=-1)
