"""What each fact that is claimed of a scatter means, as a NumPy predicate on its indices at run time.

A proof speaks of forms, columns and dims; what a rule rests on are the places that are written, in the order in which
they are: positions row-major, a whole window each. So every claim has one definition, here, that knows nothing of how
it was proved. `broken` evaluates all that is claimed of a scatter on one set of values.

    claims  = record.claims
    applied = apply(numbers, operand_shape, updates_shape, indices)
    broken(claims, applied, updates)           ()
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir.mlir import ScatterNumbers

# --- the windows of a scatter in the order of application: positions row-major, a whole window each, all at once ---

Array = NDArray[Any]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

BEYOND = 1 << 62
"""Starts are cut to +-2^62, so that sums of them are exact: further out than every size."""


@dataclass(frozen=True, eq=False)
class Applied:
    """The windows of a scatter in the order of application.

    Attributes:
      operand_shape, window: sizes of the operand and of a window, both of rank R.
      starts: [P, R], where each window starts.
      indices: [P, K], the index vectors as they are.
      batching: for each explicit batching dim the coordinate of each position, [P, number of them].
      update_order: the dims of the updates, scatter dims first, then those of the window.
      window_dims: the operand dims that the window dims of the updates stand for.
    """

    operand_shape: tuple[int, ...]
    window: tuple[int, ...]
    starts: Integers
    indices: Array
    batching: Integers
    update_order: tuple[int, ...]
    window_dims: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return 0 in (len(self.starts), prod(self.window), prod(self.operand_shape))

    @cached_property
    def last(self) -> Integers:
        """The last start in each operand dim with which a window is inside."""
        return np.asarray(self.operand_shape, np.int64) - np.asarray(self.window, np.int64)

    @cached_property
    def inside_dims(self) -> Mask:
        """For each position and operand dim whether the start is inside, [P, R]."""
        return np.asarray((self.starts >= 0) & (self.starts <= self.last))

    @cached_property
    def inside(self) -> Mask:
        """For each position whether its window is inside."""
        return np.asarray(np.all(self.inside_dims, axis=1), np.bool_)

    @cached_property
    def outside(self) -> Mask:
        """For each position whether all of its window is outside."""
        shape = np.asarray(self.operand_shape, np.int64)
        beyond: Mask = np.asarray((self.starts >= shape) | (self.starts <= -np.asarray(self.window, np.int64)))
        return np.asarray(np.any(beyond, axis=1), np.bool_)

    def in_dims(self, positions: Sequence[int]) -> Integers:
        """The starts under dims of these sizes, [*positions, R]."""
        return self.starts.reshape(*positions, len(self.operand_shape))

    def written_elements(self, oob: str) -> Integers:
        """The row-major numbers of the written elements, in the order of the writes."""
        offsets = _coordinates_of(self.window).T
        places = self.starts[:, None, :] + offsets
        within = (places >= 0) & (places < np.asarray(self.operand_shape, np.int64))
        kept: Mask = np.asarray(np.all(within, axis=2), np.bool_)
        if oob == "xla":
            kept &= self.inside[:, None]
        strides = [prod(self.operand_shape[d + 1 :]) for d in range(len(self.operand_shape))]
        return places[kept] @ np.asarray(strides, np.int64)

    def rows(self, positions: Sequence[int], batch: Sequence[tuple[int, int]], placed: Sequence[int]) -> Integers:
        """The row of each write, [batch coordinates, writes], in the order of application; -1 for one outside."""
        taken = [n for _, n in batch]
        order = [*taken, *(n for n in range(len(positions)) if n not in taken)]
        starts = self.in_dims(positions).transpose(*order, len(order))
        groups = prod(positions[n] for n in taken)
        extents = [self.window[d] for d in placed]
        offsets = _coordinates_of(extents).T
        sizes = np.asarray([self.operand_shape[d] for d in placed], np.int64)
        places = starts[..., list(placed)].reshape(groups, prod(positions) // groups, 1, len(extents)) + offsets
        strides = np.asarray([prod(sizes[k + 1 :].tolist()) for k in range(len(extents))], np.int64)
        inside: Mask = np.asarray(np.all((places >= 0) & (places < sizes), axis=3), np.bool_)
        return np.where(inside, np.where(inside[..., None], places, 0) @ strides, -1).reshape(groups, inside[0].size)


def apply(
    numbers: ScatterNumbers, operand_shape: Sequence[int], updates_shape: Sequence[int], indices: Array
) -> Applied:
    """The windows of a scatter.

    Args:
      numbers: the dimension numbers.
      operand_shape, updates_shape: of the first operand and its updates.
      indices: the index tensor at run time, as it is given.
    """
    rank, ivd = len(operand_shape), numbers.index_vector_dim
    scatter_dims = [d for d in range(len(updates_shape)) if d not in numbers.update_window_dims]
    positions = [updates_shape[d] for d in scatter_dims]
    vectors = np.moveaxis(indices, ivd, -1) if ivd < indices.ndim else indices[..., None]
    vectors = vectors.reshape(prod(positions), len(numbers.scatter_dims_to_operand_dims))
    starts: Integers = np.zeros((prod(positions), rank), np.int64)
    for k, dim in enumerate(numbers.scatter_dims_to_operand_dims):
        starts[:, dim] = _cut(vectors[:, k])
    coordinates = _coordinates_of(positions)
    batching: list[Integers] = []
    for dim, n in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        batching.append(coordinates[n - (n > ivd)])
        starts[:, dim] = batching[-1]
    covered = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    window_dims = tuple(d for d in range(rank) if d not in covered)
    window = [1] * rank
    for operand_dim, update_dim in zip(window_dims, numbers.update_window_dims, strict=True):
        window[operand_dim] = updates_shape[update_dim]
    return Applied(
        operand_shape=tuple(operand_shape),
        window=tuple(window),
        starts=starts,
        indices=vectors,
        batching=np.stack(batching, axis=1) if batching else np.zeros((prod(positions), 0), np.int64),
        update_order=(*scatter_dims, *numbers.update_window_dims),
        window_dims=window_dims,
    )


def _coordinates_of(sizes: Sequence[int]) -> Integers:
    """The coordinates in each dim of these sizes, [dims, their product], row-major."""
    return np.indices(tuple(sizes), np.int64).reshape(len(sizes), prod(sizes))


def _cut(column: Array) -> Integers:
    if column.dtype.kind == "u":
        return np.minimum(column, np.asarray(min(BEYOND, np.iinfo(column.dtype).max), column.dtype)).astype(np.int64)
    return np.clip(column.astype(np.int64), -BEYOND, BEYOND)


# --- what is claimed ---


@dataclass(frozen=True)
class RunClaim:
    """Positions along a scatter dim write consecutive rows of an operand dim.

    Attributes:
      operand_dim, scatter_dim: where the rows lie, and along which dim the positions go.
      is_reversed: the first position writes the last row.
      is_wrapped: the rows come in two parts, one from the first index on, one that ends with the last index.
      is_aligned: either all rows are inside or none.
    """

    operand_dim: int
    scatter_dim: int
    is_reversed: bool = False
    is_wrapped: bool = False
    is_aligned: bool = False


@dataclass(frozen=True)
class Claims:
    """What is claimed of a scatter; the defaults claim nothing.

    Attributes:
      oob: the policy that in_bounds and is_unique speak of.
      positions: the sizes of the dims that scatter dims are numbered in here; their product is the number of windows.
      in_bounds: "always": every window is inside; "never": none is written; "unknown".
      windows: "inside", "outside" (each wholly), "whole" (each one of both), "overhangs" (one at least), "unknown".
      inside: operand dims in which every start is inside.
      ranges: for each component of the index vector the least and the greatest value.
      runs: see `RunClaim`; nothing else moves along their scatter dims.
      coordinates: (operand dim, scatter dim): the start is the coordinate, from the first row to the last.
      repeated: scatter dims along which nothing moves.
      starts: per operand dim the start of the one window that the runs make, where it is known.
      batch: (operand dim, scatter dim) pairs that number the batch coordinates of what follows.
      placed: operand dims whose row-major number is the row that is written; windows cover the others whole.
      is_full: every element is written.
      is_unique: no element is written twice.
      is_permutation: for each batch coordinate each row is written once.
      is_sorted: for each batch coordinate the rows never go down from one write to the next, and all are inside.
      is_uniform: for each explicit batch coordinate, all rows of all updates are the same.
    """

    oob: Literal["xla", "spec"]
    positions: tuple[int, ...]
    in_bounds: str = "unknown"
    windows: str = "unknown"
    inside: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    runs: tuple[RunClaim, ...] = ()
    coordinates: tuple[tuple[int, int], ...] = ()
    repeated: tuple[int, ...] = ()
    starts: tuple[int | None, ...] = ()
    batch: tuple[tuple[int, int], ...] = ()
    placed: tuple[int, ...] = ()
    is_full: bool = False
    is_unique: bool = False
    is_permutation: bool = False
    is_sorted: bool = False
    is_uniform: bool = False


# --- one predicate for each claim ---


def _in_bounds(claims: Claims, at: Applied) -> bool:
    missed = ~at.inside if claims.oob == "xla" else at.outside
    return {"always": at.inside.all(), "never": missed.all()}.get(claims.in_bounds, np.True_).item()


def _windows(claims: Claims, at: Applied) -> bool:
    whole = at.inside | at.outside
    told = {"inside": at.inside.all(), "outside": at.outside.all(), "whole": whole.all(), "overhangs": ~whole.all()}
    return told.get(claims.windows, np.True_).item()


def _inside(claims: Claims, at: Applied) -> bool:
    return bool(at.inside_dims[:, list(claims.inside)].all())


def _ranges(claims: Claims, at: Applied) -> bool:
    columns = zip(at.indices.T, claims.ranges, strict=True) if claims.ranges else ()
    return all(low <= int(column.min()) and int(column.max()) <= high for column, (low, high) in columns)


def _runs(claims: Claims, at: Applied) -> bool:
    return all(_run(run, claims, at) for run in claims.runs)


def _run(run: RunClaim, claims: Claims, at: Applied) -> bool:
    """Each row is written where the run, from its first row on, says, and no other; or it is outside in both."""
    starts = np.moveaxis(at.in_dims(claims.positions), run.scatter_dim, -2)  # [..., S, R]
    others = [d for d in range(len(at.operand_shape)) if d != run.operand_dim]
    if not np.array_equal(starts[..., others], np.broadcast_to(starts[..., :1, :], starts.shape)[..., others]):
        return False
    rows, size = starts[..., run.operand_dim], at.operand_shape[run.operand_dim]
    rows = rows[..., ::-1] if run.is_reversed else rows
    steps: Integers = np.arange(rows.shape[-1], dtype=np.int64)

    def is_in(row: Integers) -> Mask:
        return np.asarray((row >= 0) & (row < size))

    first: Integers = np.asarray(rows[..., :1] + steps, np.int64)
    inside = is_in(rows)
    if run.is_aligned:
        return bool(np.all(inside == inside[..., :1])) and bool(np.all((first == rows)[inside]))
    parts: tuple[Integers, ...] = (first,)
    if run.is_wrapped:
        parts = (first, np.asarray(rows[..., -1:] - steps[-1] + steps, np.int64))
    hit, strays = np.zeros(rows.shape, np.bool_), np.zeros(rows.shape, np.bool_)
    for part in parts:
        hit |= part == rows
        strays |= is_in(part) & (part != rows)
    return bool(np.all(hit | ~inside)) and not bool(np.any(strays))


def _coordinates(claims: Claims, at: Applied) -> bool:
    starts = at.in_dims(claims.positions)
    for dim, n in claims.coordinates:
        line = np.moveaxis(starts[..., dim], n, -1)
        size = at.operand_shape[dim]
        if line.shape[-1] != size or not np.array_equal(line, np.broadcast_to(np.arange(size), line.shape)):
            return False
    return True


def _repeated(claims: Claims, at: Applied) -> bool:
    lines = [np.moveaxis(at.in_dims(claims.positions), n, 0) for n in claims.repeated]
    return not any((line != line[:1]).any() for line in lines)


def _starts(claims: Claims, at: Applied) -> bool:
    reversed_dims = [run.scatter_dim for run in claims.runs if run.is_reversed]
    first = tuple(-1 if n in reversed_dims else 0 for n in range(len(claims.positions)))
    found = at.in_dims(claims.positions)[first]
    pairs = zip(claims.starts, found.tolist(), strict=True) if claims.starts else ()
    return all(known is None or max(-BEYOND, min(known, BEYOND)) == start for known, start in pairs)


def _is_unique(claims: Claims, at: Applied) -> bool:
    written = at.written_elements(claims.oob)
    return len(np.unique(written)) == len(written)


def _is_permutation(claims: Claims, at: Applied) -> bool:
    rows = np.sort(at.rows(claims.positions, claims.batch, claims.placed), axis=1)
    count = prod(at.operand_shape[d] for d in claims.placed)
    return bool(at.inside.all()) and rows.shape[1] == count and bool((rows == np.arange(count)).all())


def _is_sorted(claims: Claims, at: Applied) -> bool:
    rows = at.rows(claims.positions, claims.batch, claims.placed)
    return bool(at.inside.all()) and bool((np.diff(rows, axis=1) >= 0).all())


def _is_uniform(claims: Claims, at: Applied, updates: Sequence[Array]) -> bool:
    """Compared bit for bit: 0.0 and -0.0 differ."""
    groups = np.unique(at.batching, axis=0, return_inverse=True)[1].reshape(-1) if at.batching.size else None
    for update in updates:
        window = [at.window[d] for d in at.window_dims]
        values = np.ascontiguousarray(update.transpose(at.update_order)).reshape(len(at.starts), *window)
        for k, dim in enumerate(at.window_dims):
            if dim in claims.placed and (_bits(values) != _bits(np.take(values, [0], axis=1 + k))).any():
                return False
        group = np.zeros(len(values), np.int64) if groups is None else groups
        first = np.unique(group, return_index=True)[1]
        if (_bits(values) != _bits(values[first[group]])).any():
            return False
    return True


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values)[..., None].view(np.uint8)


PREDICATES: Mapping[str, Callable[[Claims, Applied], bool]] = {
    "in_bounds": _in_bounds,
    "windows": _windows,
    "inside": _inside,
    "ranges": _ranges,
    "runs": _runs,
    "coordinates": _coordinates,
    "repeated": _repeated,
    "starts": _starts,
    "is_full": lambda claims, at: len(np.unique(at.written_elements(claims.oob))) == prod(at.operand_shape),
    "is_unique": _is_unique,
    "is_permutation": _is_permutation,
    "is_sorted": _is_sorted,
}
"""By the name of what is claimed. Each holds where nothing is claimed."""


def broken(claims: Claims, applied: Applied, updates: Sequence[Array] = ()) -> tuple[str, ...]:
    """The names of the claims that do not hold of a scatter at run time.

    Args:
      claims: what is claimed.
      applied: its windows, from the indices of this run.
      updates: its updates, as given; without them `is_uniform` is not looked at.
    """
    if applied.is_empty:
        return ()
    claimed = (name for name in PREDICATES if getattr(claims, name) not in (False, (), "unknown"))
    found = [name for name in claimed if not PREDICATES[name](claims, applied)]
    if claims.is_uniform and updates and not _is_uniform(claims, applied, updates):
        found.append("is_uniform")
    return tuple(found)


__all__ = ["PREDICATES", "Applied", "Claims", "RunClaim", "apply", "broken"]
