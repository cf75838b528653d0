"""Places: where in its operand the element comes from that an op has put at a place.

A place is a linear form for each dim of a tensor.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from hlo_lower.facts.forms.linear import ZERO, Linear, Position, Start
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.spec import MOVES

Place: TypeAlias = tuple[Linear, ...]


class Entry(NamedTuple):
    """One element of a tensor.

    Attributes:
      site: the tensor.
      place: where in it.
    """

    site: Site
    place: Place

    def to(self, value: Value) -> "Entry":
        """The element at the same place of another tensor of the same function."""
        return Entry(self.site.to(value), self.place)

    def of(self, site: Site) -> "Entry":
        """The element at the same place of another tensor."""
        return Entry(site, self.place)


def source_entry(node: Node, entry: Entry) -> Entry | None:
    """For an op that moves elements: the entry of an operand that an entry of its result is, where it is one."""
    if node.name not in MOVES or not all(operand.is_static for operand in node.operands):
        return None
    if node.name == names.DYNAMIC_SLICE:
        return before_start(node, entry)
    found = _source_place(node, entry.place)
    return None if found is None else Entry(entry.site.to(found[0]), found[1])


def _source_place(node: Node, place: Place) -> tuple[Value, Place] | None:
    match node.name:
        case names.BROADCAST_IN_DIM:
            operand = node.operand(0)
            dims = zip(operand.static_shape, node.integers("broadcast_dimensions"), strict=True)
            return operand, tuple(place[dim] if size != 1 else ZERO for size, dim in dims)
        case names.TRANSPOSE:
            origin = dict(zip(node.integers("permutation"), place, strict=True))
            return node.operand(0), tuple(origin[dim] for dim in range(len(place)))
        case names.SLICE:
            starts, strides = node.integers("start_indices"), node.integers("strides")
            parts = zip(place, starts, strides, strict=True)
            return node.operand(0), tuple(p.times(stride).plus(Linear(start)) for p, start, stride in parts)
        case names.REVERSE:
            operand, dims = node.operand(0), node.integers("dimensions")
            sizes = operand.static_shape
            mirrored = (Linear(size - 1).plus(p, -1) for p, size in zip(place, sizes, strict=True))
            return operand, tuple(m if d in dims else p for d, (m, p) in enumerate(zip(mirrored, place, strict=True)))
        case names.CONCATENATE:
            return _piece(node, place)
        case names.RESHAPE:
            origin = place_before_reshape(place, node.result().static_shape, node.operand(0).static_shape)
            return None if origin is None else (node.operand(0), origin)
        case _:
            return None


def _piece(node: Node, place: Place) -> tuple[Value, Place] | None:
    """The operand of a concatenate that holds a place whose coordinate along its dim is known."""
    dim = node.integer("dimension")
    if not place[dim].is_constant:
        return None
    offset = place[dim].constant
    for operand in node.operands:
        size = operand.static_shape[dim]
        if offset < size:
            return operand, (*place[:dim], Linear(offset), *place[dim + 1 :])
        offset -= size
    return None


def place_before_reshape(place: Place, shape: tuple[int, ...], before: tuple[int, ...]) -> Place | None:
    """The place in a tensor before a reshape, for the place after it; None where it is no form.

    Dims are compared in groups of equal size, both shapes from the left. Within a group a single dim before holds the
    row-major sum of those after; several before need a place that is known, or dims that only differ by ones.
    """
    found: list[Linear] = []
    i = j = 0
    while i < len(before) or j < len(shape):
        left, right = i, j
        rows, columns = prod(before[i : i + 1]), prod(shape[j : j + 1])
        i, j = min(i + 1, len(before)), min(j + 1, len(shape))
        while rows != columns:
            if rows < columns and i < len(before):
                rows, i = rows * before[i], i + 1
            elif j < len(shape):
                columns, j = columns * shape[j], j + 1
            else:
                return None
        group = _group_before_reshape(place[right:j], shape[right:j], before[left:i])
        if group is None:
            return None
        found.extend(group)
    return tuple(found)


def _group_before_reshape(place: Place, shape: tuple[int, ...], before: tuple[int, ...]) -> list[Linear] | None:
    flat = ZERO
    for coordinate, size in zip(place, shape, strict=True):
        flat = flat.times(size).plus(coordinate) if size != 1 else flat
    long = [d for d, size in enumerate(before) if size != 1]
    if len(long) <= 1:
        return [flat if d in long else ZERO for d in range(len(before))]
    if [before[d] for d in long] == [size for size in shape if size != 1]:
        kept = iter([p for p, size in zip(place, shape, strict=True) if size != 1])
        return [next(kept) if d in long else ZERO for d in range(len(before))]
    if not flat.is_constant:
        return _in_radix(flat, before)
    return [Linear(int(c)) for c in np.unravel_index(flat.constant, before)]


def _in_radix(flat: Linear, sizes: tuple[int, ...]) -> list[Linear] | None:
    """The row-major coordinates of a flat one, where they can be told apart: 16 * p0 + p1 in rows of 16 is (p0, p1)."""
    found: list[Linear] = []
    for size in reversed(sizes[1:]):
        terms = flat.terms.items()
        within = Linear(flat.constant % size, {s: c for s, c in terms if c % size})
        last = within.constant
        for symbol, coefficient in within.terms.items():
            if not isinstance(symbol, Position) or symbol.size < 1 or coefficient < 0:
                return None
            last += coefficient * (symbol.size - 1)
        if last >= size or flat.width:
            return None
        flat = Linear(flat.constant // size, {s: c // size for s, c in terms if not c % size})
        found.append(within)
    return [flat, *reversed(found)]


def before_start(node: Node, entry: Entry) -> Entry:
    """The entry of the operand of a `dynamic_slice` that is an entry of its result."""
    operand, place = node.operand(0), list[Linear]()
    for dim, (coordinate, size) in enumerate(zip(entry.place, operand.static_shape, strict=True)):
        last = size - node.result().static_shape[dim]
        place.append(coordinate.plus(Linear(0, {Start(entry.site, dim, last): 1})) if last else coordinate)
    return Entry(entry.site.to(operand), tuple(place))


@dataclass(frozen=True)
class Origin:
    """Where an element of a gather comes from: operand coordinate = start + offset, or the position of a batching dim.

    Attributes:
      starts: for each operand dim that the index vector addresses, the place of its component in the indices.
      offsets: for every operand dim the coordinate within the slice; of a batching dim the coordinate.
    """

    starts: dict[int, Place]
    offsets: tuple[Linear, ...]


def origin_of(node: Node, place: Place) -> Origin:
    """Where the element at a place of a gather's result comes from."""
    numbers = mlir.gather_dimension_numbers(node.raw)
    ivd, rank = numbers.index_vector_dim, len(node.operand(0).shape)
    batch = tuple(c for d, c in enumerate(place) if d not in numbers.offset_dims)
    within = iter(place[d] for d in sorted(numbers.offset_dims))
    offsets: list[Linear] = []
    for dim in range(rank):
        if dim in numbers.operand_batching_dims:
            indices_dim = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(dim)]
            offsets.append(batch[indices_dim - (indices_dim > ivd)])
        else:
            offsets.append(Linear(0) if dim in numbers.collapsed_slice_dims else next(within))
    is_implicit = ivd == len(node.operand(1).shape)
    starts = {
        dim: batch if is_implicit else (*batch[:ivd], Linear(k), *batch[ivd:])
        for k, dim in enumerate(numbers.start_index_map)
    }
    return Origin(starts, tuple(offsets))
