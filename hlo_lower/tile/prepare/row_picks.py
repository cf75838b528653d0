"""Gathers of whole rows: along one dim, each row number at that dim of the result, of each batch other ones.

Gathers that take one row of each batch, or a window of one row, are written in this form, with a reshape behind them:

    gather(%x : BxTxV, (b, t) : Bx1) -> BxV         ->  reshape(gather(%x, Bx1x1) : Bx1xV)
    gather(%x : BxTxV, windows of 1x1xV) -> Bx1xV   ->  gather(%x, Bx1x1) : Bx1xV

Equal: an index along a dim of which a window takes everything is clamped to 0, and a dim of one position may be
anywhere.
"""

from dataclasses import dataclass
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node


@dataclass(frozen=True)
class RowPick:
    """What rows a gather takes.

    Attributes:
      dim: of the operand, and of the result.
      along: the dim of the index tensor whose row numbers these are.
      batch: dims of operand and result along which each position has rows of its own.
    """

    dim: int
    along: int
    batch: tuple[int, ...]

    @property
    def named(self) -> list[int]:
        """The dims of the result that those of the index tensor are, in order."""
        return sorted((self.dim, *self.batch))


def row_pick(pick: Node) -> RowPick | None:
    """What rows a gather takes; None of another one."""
    numbers, operand = mlir.gather_dimension_numbers(pick.raw), pick.operand(0)
    if len(numbers.collapsed_slice_dims) != 1 or numbers.start_index_map != numbers.collapsed_slice_dims:
        return None
    [dim], rank = numbers.collapsed_slice_dims, len(pick.result().shape)
    found = RowPick(dim, 0, tuple(sorted(numbers.operand_batching_dims)))
    others = tuple(d for d in range(rank) if d not in found.named)
    sizes = pick.integers("slice_sizes")
    is_whole = all(sizes[d] == n for d, n in enumerate(operand.shape) if d not in found.named)
    if rank != len(operand.shape) or numbers.offset_dims != others or not is_whole:
        return None
    counted = [d for d in range(len(pick.operand(1).shape)) if d != numbers.index_vector_dim]
    pairs = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    if any(pairs.get(index) != d for index, d in zip(counted, found.named, strict=True) if d != dim):
        return None
    return RowPick(dim, counted[found.named.index(dim)], found.batch)


def write_rows(pick: Node) -> Node:
    """A gather of one row of each batch in the form of `row_pick`, in its place; another one, as it is."""
    numbers, operand, indices = mlir.gather_dimension_numbers(pick.raw), pick.operand(0), pick.operand(1)
    shape, sizes = operand.static_shape, pick.integers("slice_sizes")
    moved = [k for k, d in enumerate(numbers.start_index_map) if sizes[d] != shape[d]]
    batching, counted = numbers.operand_batching_dims, indices.static_shape
    if len(moved) != 1 or row_pick(pick) is not None or numbers.index_vector_dim >= len(counted):
        return pick
    dim = numbers.start_index_map[moved[0]]
    is_whole = all(d in batching or d == dim or sizes[d] == n for d, n in enumerate(shape))
    is_one = prod(counted) == len(numbers.start_index_map) * prod(shape[d] for d in batching)
    lists, order = numbers.start_indices_batching_dims, sorted(range(len(batching)), key=lambda k: batching[k])
    is_in_order = [lists[k] for k in order] == sorted(lists)
    rows = RowPick(dim, sorted((dim, *batching)).index(dim), tuple(sorted(batching)))
    new = tuple(1 if d == dim else n for d, n in enumerate(shape))
    long = [d for d in rows.batch if shape[d] != 1]
    first = [r for r in range(len(pick.result().shape)) if r not in numbers.offset_dims]
    stay = [r for r in first if pick.result().shape[r] != 1]
    others = [n for n in pick.result().shape if n != 1]
    is_alike = others == [n for n in new if n != 1] and _are_in_front(new, long, pick, stay)
    if not (is_whole and sizes[dim] == 1 and is_one and is_in_order and is_alike):
        return pick
    build, vector = Builder.before(pick), numbers.index_vector_dim
    starts, limits = [0] * len(counted), list(counted)
    starts[vector], limits[vector] = moved[0], moved[0] + 1
    column = build.reshape(build.slice(indices, starts, limits), [*(new[d] for d in rows.named), 1])
    found = build.gather_rows(operand, column, rows.dim, rows.batch)
    maker = found.node
    assert maker is not None
    pick.result().raw.replace_all_uses_with(build.reshape(found, pick.result().static_shape).raw)
    pick.raw.erase()
    return maker


def _are_in_front(new: tuple[int, ...], batch: list[int], pick: Node, stay: list[int]) -> bool:
    """Whether long dims of the batch are as many in front of each long dim of windows, before and after."""
    before = [r in stay for r, n in enumerate(pick.result().shape) if n != 1]
    after = [d in batch for d, n in enumerate(new) if n != 1]
    return before == after
