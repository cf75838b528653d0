"""Materialize a scatter under its layout: starts and updates of the kept positions, the runs merged into the window."""

from dataclasses import dataclass
from itertools import product

from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.layout import Layout, RunOfRows
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Value


@dataclass(frozen=True)
class Part:
    """One of the windows of a kept position; a wrapped run has two.

    Attributes:
      by_last_row: the runs that are placed by their last row, not by their first.
    """

    by_last_row: tuple[RunOfRows, ...]


@dataclass(frozen=True)
class Arrangement:
    """A scatter with its layout.

    Attributes:
      scatter: the scatter in canonical form.
      layout: what its scatter dims do.
    """

    scatter: CanonicalScatter
    layout: Layout

    @property
    def parts(self) -> tuple[Part, ...]:
        """The windows of each kept position, in the order in which they are written.

        Negative rows come before the others, so the part that begins at the first row comes first (trap 39).
        """
        wrapped = self.layout.wrapped
        choices = product(*((False, True) for _ in wrapped))
        return tuple(Part(tuple(r for r, second in zip(wrapped, c, strict=True) if second)) for c in choices)

    def indices(self, build: Builder, part: Part) -> Value:
        """The index vectors of the first rows, [kept..., K], in the start type.

        Of a run that is part of `part.by_last_row` it is the vector of the last row: `first_of` goes back from there.
        """
        scatter, layout = self.scatter, self.layout
        value = scatter.canonical_indices(build)
        first = [0] * (len(scatter.scatter_shape) + 1)
        limit = [*scatter.scatter_shape, len(scatter.index_dims)]
        for run in layout.runs:
            at_end = run.is_reversed or run in part.by_last_row
            first[run.scatter_dim] = run.size - 1 if at_end else 0
            limit[run.scatter_dim] = first[run.scatter_dim] + 1
        for n in layout.repeated:
            limit[n] = 1
        value = build.slice(value, first, limit)
        return build.reshape(value, (*layout.kept_shape, len(scatter.index_dims)))

    def first_of(self, build: Builder, run: RunOfRows, last: Value) -> Value:
        """The first row of a run from its last one; far out of bounds it stays out of bounds, and nothing overflows.

        A last row in [0, D + S - 2] is needed exactly; one below or above puts all rows out of bounds.
        """
        extent, element = self.scatter.operand_shape[run.operand_dim], last.element_type
        low = build.constant(-1, last.static_shape, element)
        high = build.constant(extent + run.size - 1, last.static_shape, element)
        kept = build.clamp(low, last, high)
        return build.subtract(kept, build.constant(run.size - 1, last.static_shape, element))

    def updates(self, build: Builder) -> list[Value]:
        """The updates in the region's types, [kept..., W0, ..., W(R-1)] with the runs in the window.

        One transpose at most, from the updates as given: a second one would keep compilers from seeing that, more often
        than not, both together change nothing.
        """
        types = self.scatter.region_types
        return [self._arranged(build, build.convert(v, t)) for v, t in zip(self.scatter.updates, types, strict=True)]

    def _arranged(self, build: Builder, value: Value) -> Value:
        scatter, layout = self.scatter, self.layout
        m = len(scatter.scatter_shape)
        value, permutation = scatter.unfold(build, value)
        scatter_dims, window_dims = permutation[:m], permutation[m:]
        first, limit = [0] * len(value.static_shape), list(value.static_shape)
        for n in layout.repeated:
            first[scatter_dims[n]] = limit[scatter_dims[n]] - 1
        value = build.slice(value, first, limit)
        value = build.reverse(value, [scatter_dims[run.scatter_dim] for run in layout.runs if run.is_reversed])
        merged = {run.operand_dim: scatter_dims[run.scatter_dim] for run in layout.runs}
        taken = {*(scatter_dims[n] for n in layout.kept), *merged.values()}
        idle = [d for d in scatter_dims if d not in taken]
        place = dict(zip(scatter.window_dims, window_dims, strict=True))
        order = [*idle, *(scatter_dims[n] for n in layout.kept)]
        for dim in range(scatter.rank):
            order += [dims[dim] for dims in (merged, place) if dim in dims]
        return build.reshape(build.transpose(value, order), (*layout.kept_shape, *layout.window))
