"""A sort in one form: rows of [A, n, C] along the middle dim, its keys, and which rows of the result are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.facts.sort.comparator import ELEMENTWISE, SortKey, cone_of, sort_keys
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.names import SLICE

MOST_ELEMENTS = 1 << 30
"""Beyond it positions and places are not counted in i32."""


@dataclass(frozen=True)
class CanonicalSort:
    """A sort of static shape whose comparator is read.

    Attributes:
      node: the sort.
      keys: what it sorts by, the first key first.
      dim: the dim that it sorts along.
      readers: what is replaced: the slices that are all that reads the results, or the sort itself.
      first, last: the rows that are read, [first, last).
    """

    node: Node
    keys: tuple[SortKey, ...]
    dim: int
    readers: tuple[Node, ...]
    first: int
    last: int

    @property
    def shape(self) -> tuple[int, ...]:
        """That of every operand."""
        return self.node.operand(0).static_shape

    @cached_property
    def canonical_shape(self) -> tuple[int, int, int]:
        """[A, n, C]: what stands before the sorted dim, the dim, and what stands behind it."""
        shape = self.shape
        return prod(shape[: self.dim]), shape[self.dim], prod(shape[self.dim + 1 :])

    @property
    def rows(self) -> int:
        """How many rows of the result are read."""
        return self.last - self.first

    @property
    def read(self) -> tuple[list[int], list[int]]:
        """Where the rows that are read start and end in [A, n, C]."""
        a, _, c = self.canonical_shape
        return [0, self.first, 0], [a, self.last, c]

    @cached_property
    def used_results(self) -> tuple[int, ...]:
        """The numbers of the results that are read."""
        return tuple(result.number for result in self.node.results if result.is_used)

    def column(self, build: Builder, number: int) -> Value:
        """An operand as [A, n, C]."""
        return build.reshape(self.node.operand(number), self.canonical_shape)

    def results_of(self, build: Builder, columns: dict[int, Value]) -> list[Value]:
        """The values that replace what is read.

        Args:
          build: where to build.
          columns: for each result that is read its rows, [A, rows, C].
        """
        shape = [self.rows if d == self.dim else size for d, size in enumerate(self.shape)]
        wide = {number: build.reshape(column, shape) for number, column in columns.items()}
        if self.readers == (self.node,):
            return [wide.get(k, operand) for k, operand in enumerate(self.node.operands)]
        return [self._part(build, wide[reader.operand(0).number], reader) for reader in self.readers]

    def _part(self, build: Builder, rows: Value, reader: Node) -> Value:
        """Build the result of a slice from the rows that were computed."""
        starts, limits = list(reader.integers("start_indices")), list(reader.integers("limit_indices"))
        starts[self.dim] -= self.first
        limits[self.dim] -= self.first
        return build.slice(rows, starts, limits, reader.integers("strides"))


def read_sort(node: Node) -> CanonicalSort | Cause:
    """A sort in its canonical form, or why it has none."""
    if not all(value.is_static for value in node.operands):
        return Code.NEEDS_SIZES()
    keys, shape = sort_keys(node), node.operand(0).static_shape
    if not keys:
        return Code.COMPARATOR_NOT_READ()
    if not all(_is_elementwise(key, node) for key in keys):
        return Code.KEY_NOT_READ()
    if prod(shape) > MOST_ELEMENTS:
        return Code.MORE_THAN_I32()
    dim = sorted_dim(node)
    readers, first, last = rows_read(node, node.results, node) or ((node,), 0, shape[dim])
    return CanonicalSort(node, keys, dim, readers, first, last)


def _is_elementwise(key: SortKey, sort: Node) -> bool:
    """Whether a key is of a type that is compared here, and can be computed for all elements at once."""
    element = key.value.element_type
    if type_range(element) is None and element not in WIDE_FLOATS:
        return False
    inner = list(cone_of(key.value, sort.blocks[0]))
    return all(node.name in ELEMENTWISE and node.result().shape == () for node in inner)


def rows_read(holder: Node, values: Sequence[Value], sort: Node) -> tuple[tuple[Node, ...], int, int] | None:
    """The slices that are all that reads values, and the rows from the first to the last one read; None where something
    else reads them, or all rows are read.

    Args:
      holder: the node whose results they are; its readers stand in the same block.
      values: of the sort's shape.
      sort: along whose dim rows are meant.
    """
    shape = sort.operand(0).static_shape
    dim = sorted_dim(sort)
    users = list(dict.fromkeys(user for value in values for user in value.users))
    if not users or not all(user.name == SLICE and user.raw.block == holder.raw.block for user in users):
        return None
    first = min(user.integers("start_indices")[dim] for user in users)
    last = max(user.integers("limit_indices")[dim] for user in users)
    return (tuple(users), first, last) if first < last < first + shape[dim] else None


def sorted_dim(sort: Node) -> int:
    """The dim that a sort sorts along, from 0; the last one where none is named."""
    dim = -1 if sort.attribute("dimension") is None else sort.integer("dimension")
    return dim + len(sort.operand(0).shape) if dim < 0 else dim
