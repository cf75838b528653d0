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
from math import prod
from typing import Literal

import numpy as np

from hlo_lower.facts.scatter.application_order import BEYOND, Applied, Array, Integers, Mask, apply


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


def _is_full(claims: Claims, at: Applied) -> bool:
    return len(np.unique(at.written(claims.oob))) == prod(at.operand_shape)


def _is_unique(claims: Claims, at: Applied) -> bool:
    written = at.written(claims.oob)
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
    "is_full": _is_full,
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
    found = [name for name, holds in PREDICATES.items() if _is_claimed(claims, name) and not holds(claims, applied)]
    if claims.is_uniform and updates and not _is_uniform(claims, applied, updates):
        found.append("is_uniform")
    return tuple(found)


def _is_claimed(claims: Claims, name: str) -> bool:
    return getattr(claims, name) not in (False, (), "unknown")


__all__ = ["PREDICATES", "Applied", "Claims", "RunClaim", "apply", "broken"]
