"""The canonical scatter (docs/architecture.md): every form of `stablehlo.scatter` brought to one, once.

    indices [N0, ..., Nm, K]          the index vector last, the scatter dims kept apart
    updates [N0, ..., Nm, W0, ..., W(R-1)]   a window of the operand's rank, extent 1 in inserted and batching dims
    start   one per operand dim       from the index vector, from the position (batching dims), or 0

Its dimension numbers are read in `form`. A scatter of dynamic shape has no canonical form; see `dynamic`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod

from hlo_lower.base.causes import Code
from hlo_lower.facts.forms.linear import Linear, Position
from hlo_lower.facts.forms.places import Place
from hlo_lower.facts.scatter.dimension_numbers import (
    NotCanonicalError,
    ScatterDimensionNumbers,
    read_dimension_numbers,
    saturate,
)
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value


@dataclass(frozen=True)
class CanonicalScatter(ScatterDimensionNumbers):
    """A scatter of static shape in canonical form.

    Attributes:
      operand_shape: shape of each operand, rank R.
      given_scatter_shape: sizes of the scatter dims as given.
      window: W0, ..., W(R-1).
      narrowed: whether 64-bit indices are to be brought to i32 where every size fits, as a target may want it.
      unfolded: the dims that the positions along the one scatter dim are counted in; () for the scatter dims as given.
      index_range: the least and the greatest index, where they are proved to be less than their type allows.
    """

    operand_shape: tuple[int, ...]
    given_scatter_shape: tuple[int, ...]
    window: tuple[int, ...]
    narrowed: bool = False
    index_range: tuple[int, int] | None = None
    unfolded: tuple[int, ...] = ()

    @property
    def scatter_shape(self) -> tuple[int, ...]:
        """N0, ..., Nm."""
        return self.unfolded or self.given_scatter_shape

    @property
    def is_empty(self) -> bool:
        """Whether there is no element to write."""
        return 0 in (self.positions, prod(self.window), prod(self.operand_shape))

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """The scatter dims of the updates as given."""
        return self.update_permutation[: len(self.given_scatter_shape)]

    @property
    def positions(self) -> int:
        """How many windows are written: N0 * ... * Nm."""
        return prod(self.scatter_shape)

    @property
    def rank(self) -> int:
        """R."""
        return len(self.operand_shape)

    @property
    def start_type(self) -> str:
        """The integer type that starts and bounds are computed in.

        i32 where the index type is no wider and twice every size fits (`DynamicTile` adds a size to a size; a run is as
        long as its scatter dim), else i64.
        A u32 is saturated before it is converted, so it needs no more; i64 and u64 stay 64 bits wide unless they are
        narrowed: then they are saturated, too.
        """
        fits = all(size < 1 << 30 for size in (*self.operand_shape, *self.scatter_shape))
        return "i32" if fits and (self.narrowed or not self.has_wide_indices) else "i64"

    # --- materialization ---

    def canonical_updates(self, build: Builder) -> list[Value]:
        """The updates in the region's types, [N0, ..., Nm, W0, ..., W(R-1)]."""
        shape = (*self.scatter_shape, *self.window)
        converted = (build.convert(v, t) for v, t in zip(self.updates, self.region_types, strict=True))
        return [build.reshape(build.transpose(v, self.update_permutation), shape) for v in converted]

    def unfold(self, build: Builder, update: Value) -> tuple[Value, tuple[int, ...]]:
        """An update under N0, ..., Nm, and its dims in the order scatter dims, window dims."""
        if not self.unfolded:
            return update, self.update_permutation
        (dim,), more = self.scatter_dims, len(self.unfolded) - 1
        shape = update.static_shape
        update = build.reshape(update, (*shape[:dim], *self.unfolded, *shape[dim + 1 :]))
        window_dims = (d + more * (d > dim) for d in self.update_permutation[1:])
        return update, (*range(dim, dim + more + 1), *window_dims)

    def canonical_indices(self, build: Builder) -> Value:
        """The indices in the start type, [N0, ..., Nm, K]; each keeps its meaning for every bound up to the sizes."""
        indices, ivd = self.indices, self.index_vector_dim
        rank = len(indices.static_shape)
        if ivd < rank:
            indices = build.transpose(indices, [d for d in range(rank) if d != ivd] + [ivd])
        return build.reshape(self._in_start_type(build, indices), (*self.scatter_shape, len(self.index_dims)))

    def _in_start_type(self, build: Builder, indices: Value) -> Value:
        """Widen narrow types; saturate wider ones, and unsigned ones that could become negative (trap 6).

        An index that is saturated upwards is so far beyond every size that no run that ends there begins inside, and
        one downwards so far below 0 that no run reaches back to 0: they are out of bounds as they were before.
        """
        number = max((*self.operand_shape, 1)) + max((*self.scatter_shape, 1))
        return saturate(build, indices, self.start_type, self.beyond(self.start_type, self.index_range), number)


def canonicalize(node: Node) -> CanonicalScatter:
    """Bring a scatter to canonical form.

    Args:
      node: the scatter.

    Raises:
      NotCanonicalError: a shape is dynamic, or an element type is quantized or `index`.
    """
    form = read_dimension_numbers(node)
    for value in node.operands:
        if not value.is_static:
            raise NotCanonicalError(Code.DYNAMIC_SHAPE(str(value.raw.type)))
    operand_shape, updates_shape = form.operands[0].static_shape, form.updates[0].static_shape
    split = len(updates_shape) - len(form.window_dims)
    scatter_dims, update_window_dims = form.update_permutation[:split], form.update_permutation[split:]
    window = [1] * len(operand_shape)
    for operand_dim, update_dim in zip(form.window_dims, update_window_dims, strict=True):
        window[operand_dim] = updates_shape[update_dim]
    return CanonicalScatter(
        **{field.name: getattr(form, field.name) for field in fields(form)},
        operand_shape=operand_shape,
        given_scatter_shape=tuple(updates_shape[d] for d in scatter_dims),
        window=tuple(window),
    )


def index_place(scatter: CanonicalScatter, component: int, indices_rank: int) -> Place:
    """The place of a component of the index vector, in the indices as given, at a symbolic position."""
    place = tuple(
        Linear(0, {Position(n, size): 1}) if size > 1 else Linear(0) for n, size in enumerate(scatter.scatter_shape)
    )
    if scatter.unfolded:
        flat = Linear(0)
        for coordinate, size in zip(place, scatter.unfolded, strict=True):
            flat = flat.times(size).plus(coordinate)
        place = (flat,)
    ivd = scatter.index_vector_dim
    return place if ivd == indices_rank else (*place[:ivd], Linear(component), *place[ivd:])


def index_columns(scatter: CanonicalScatter, indices_rank: int) -> Sequence[tuple[int, tuple[slice | int, ...]]]:
    """For each component of the index vector: the operand dim, and the NumPy index of its column in the indices."""
    ivd = scatter.index_vector_dim
    if ivd == indices_rank:
        return [(dim, (slice(None),) * indices_rank) for dim in scatter.index_dims]
    return [
        (dim, tuple(k if d == ivd else slice(None) for d in range(indices_rank)))
        for k, dim in enumerate(scatter.index_dims)
    ]
