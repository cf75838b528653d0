"""A scatter with sizes that are known at run time only: its form and the few facts that its lowering needs.

Sizes come from `get_dimension_size`, so a bound is always that of the actual tensor, and padding of a bounded dynamic
one is never written (trap 29). What the static classification proves needs sizes; here a start is proved to be inside
only where the sizes do not matter: a constant one in a dim of known size, or 0, since no window is larger than its
operand (constraint C4 of the specification).

`--bind` gives the sizes before lowering; then all of this is not needed, and every rule applies.
"""

from dataclasses import dataclass, fields
from enum import Enum

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.registry import FactsByName
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.dimension_numbers import ScatterDimensionNumbers, read_dimension_numbers
from hlo_lower.facts.scatter.facts import Arity, Drops, FloatMode, OutOfBounds, kind_of
from hlo_lower.facts.values.region import Combiner, RegionFacts, classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.view import Node
from hlo_lower.ops.subset import Subset

DYNAMIC_SCATTER = "stablehlo.scatter of dynamic shape"
"""The op name under which rules for these are registered."""


class Positions(Enum):
    """How many windows there are."""

    ONE = "one"
    RUNTIME = "runtime"


class WindowSizes(Enum):
    """When the extents of what is read and written at a position are known.

    Those of the window are, and there is something to read and to write: a window of static extents still has none
    where a size at run time is 0.
    """

    STATIC = "static"
    RUNTIME = "runtime"


@dataclass(frozen=True)
class DynamicScatter(ScatterDimensionNumbers):
    """A scatter of dynamic shape.

    Attributes:
      operand_shape: shape of each operand; None for a size that is known at run time.
      updates_shape: shape of the updates as given.
      narrowed: whether 64-bit indices are to be brought to i32, as a target may want it.
    """

    operand_shape: tuple[int | None, ...]
    updates_shape: tuple[int | None, ...]
    narrowed: bool = False

    @property
    def rank(self) -> int:
        """Rank of the operands."""
        return len(self.operand_shape)

    @property
    def start_type(self) -> str:
        """The integer type of starts and bounds: i32, which sizes have at run time, or i64 where an index is wider.

        A wider index is brought to i32 where it is narrowed and every known size fits.
        """
        fits = all(size is None or size < 1 << 30 for size in (*self.operand_shape, *self.updates_shape))
        return "i64" if self.has_wide_indices and not (self.narrowed and fits) else "i32"

    @property
    def scatter_dims(self) -> tuple[int, ...]:
        """Dims of the updates that are scatter positions."""
        return self.update_permutation[: len(self.updates_shape) - len(self.window_dims)]

    @property
    def update_dim_of(self) -> dict[int, int]:
        """For each window dim of the operand the dim of the updates that holds its extent."""
        return dict(zip(self.window_dims, self.update_permutation[len(self.scatter_dims) :], strict=True))

    @property
    def inserted_dims(self) -> tuple[int, ...]:
        """Dims of the operand that are in no window and batch nothing."""
        batching = {operand_dim for operand_dim, _ in self.batching}
        return tuple(d for d in range(self.rank) if d not in self.window_dims and d not in batching)

    def extent(self, dim: int) -> int | None:
        """Extent of the window in an operand dim; None where it is known at run time."""
        places = self.update_dim_of
        return self.updates_shape[places[dim]] if dim in places else 1


@dataclass(frozen=True)
class DynamicFacts(FactsByName):
    """The facts of a scatter of dynamic shape.

    Attributes:
      combiner ... float_mode: the facts that rules constrain; the combiner is NO_OP
        also where a size that is known is 0, so that nothing is written.
      region: combiner of each operand.
      unproved: indexed operand dims in which a start may be out of bounds.
      split: those of them whose elements are dropped one by one; each element is then a position of its own.
      vanishing: dims of the updates that count positions, and inserted dims of the operand, whose size is known at run
        time only. It may be 0: then there is no position, or no place for a window, though its extent there is 1.
      why_inside: for each indexed dim whether its starts are proved to be inside.
    """

    combiner: Combiner
    positions: Positions
    window_sizes: WindowSizes
    drops: Drops
    arity: Arity
    oob: OutOfBounds
    float_mode: FloatMode
    region: RegionFacts
    unproved: tuple[int, ...]
    split: tuple[int, ...]
    vanishing: tuple[tuple[int, ...], tuple[int, ...]]
    why_inside: tuple[Cause, ...]


def read_dynamic(node: Node, *, narrowed: bool = False) -> DynamicScatter:
    """Read a scatter of any shape.

    Args:
      node: the scatter.
      narrowed: see `DynamicScatter`.

    Raises:
      NotCanonicalError: an element type is quantized or `index`.
    """
    form = read_dimension_numbers(node)
    return DynamicScatter(
        **{field.name: getattr(form, field.name) for field in fields(form)},
        operand_shape=form.operands[0].shape,
        updates_shape=form.updates[0].shape,
        narrowed=narrowed,
    )


def classify_dynamic(
    scatter: DynamicScatter, analysis: IndexAnalysis, oob: OutOfBounds, float_mode: FloatMode
) -> DynamicFacts:
    """All facts of a scatter of dynamic shape."""
    region = classify_region(scatter.region)
    inside, why = _inside(scatter, analysis)
    unproved = tuple(d for d in scatter.index_dims if d not in inside)
    split: tuple[int, ...] = ()
    if oob is OutOfBounds.SPEC:
        split = tuple(sorted(d for d in unproved if scatter.extent(d) != 1))
    drops = Drops.ELEMENTS if split else Drops.WINDOWS if unproved else Drops.NOTHING
    one = all(scatter.updates_shape[d] == 1 for d in scatter.scatter_dims)
    sizes = [scatter.extent(d) for d in range(scatter.rank) if d not in split]
    positions = (*scatter.scatter_dims, *(scatter.update_dim_of[d] for d in split))
    vanishing = (
        tuple(d for d in positions if scatter.updates_shape[d] is None),
        tuple(d for d in scatter.inserted_dims if scatter.operand_shape[d] is None),
    )
    is_empty = 0 in scatter.updates_shape or 0 in scatter.operand_shape
    return DynamicFacts(
        combiner=Combiner.NO_OP if is_empty else region.common,
        positions=Positions.ONE if one and not split else Positions.RUNTIME,
        window_sizes=WindowSizes.RUNTIME if None in sizes or any(vanishing) else WindowSizes.STATIC,
        drops=drops,
        arity=Arity.SINGLE if scatter.arity == 1 else Arity.SEPARABLE if region.separable else Arity.COUPLED,
        oob=oob,
        float_mode=float_mode,
        region=region,
        unproved=unproved,
        split=split,
        vanishing=vanishing,
        why_inside=why,
    )


def _inside(scatter: DynamicScatter, analysis: IndexAnalysis) -> tuple[set[int], tuple[Cause, ...]]:
    """The indexed dims in which every start is inside, whatever the sizes are, and a cause for each indexed dim."""
    inside: set[int] = set()
    told: list[Cause] = []
    for k, dim in enumerate(scatter.index_dims):
        size, extent = scatter.operand_shape[dim], scatter.extent(dim)
        bounds = _bounds(scatter, analysis, k)
        if bounds == (0, 0):
            told.append(Code.START_ZERO(dim))
        elif bounds is not None and size is not None and extent is not None and 0 <= bounds[0] <= bounds[1]:
            if bounds[1] > size - extent:
                told.append(Code.START_BEYOND(dim, *bounds, size - extent))
                continue
            told.append(Code.START_WITHIN(dim, size - extent, True))
        else:
            told.append(Code.START_OF_UNKNOWN_SIZE(dim))
            continue
        inside.add(dim)
    return inside, tuple(told) or (Code.NO_INDEXED_DIM(),)


def _bounds(scatter: DynamicScatter, analysis: IndexAnalysis, component: int) -> tuple[int, int] | None:
    """Least and greatest value of a component of the index vector, where the indices have a static shape."""
    indices, ivd = scatter.indices, scatter.index_vector_dim
    if not indices.is_static or 0 in indices.static_shape:
        return None
    lo, hi = analysis.of(Site(indices)).full()
    if ivd < len(indices.static_shape):
        lo, hi = np.take(lo, component, ivd), np.take(hi, component, ivd)
    return int(np.min(lo)), int(np.max(hi))


def written_subset(facts: DynamicFacts, scatter: DynamicScatter) -> tuple[Subset, str]:
    """The subset that is written, as far as it is known without sizes, and the kind for the record."""
    extents = [scatter.extent(d) for d in range(scatter.rank)]
    if facts.combiner is Combiner.NO_OP:
        subset = Subset.EMPTY
    elif facts.positions is Positions.ONE:
        subset = Subset.POINT if all(e == 1 for e in extents) else Subset.TILE
    elif not scatter.window_dims:
        subset = Subset.POINTS
    else:
        subset = Subset.FILTER if all(extents[d] == 1 for d in scatter.index_dims) else Subset.WINDOWS
    return subset, kind_of(facts.combiner, subset)
