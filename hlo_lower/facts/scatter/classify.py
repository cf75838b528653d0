"""Classify a canonical scatter: compute every fact once, each with its evidence or, where it fails, its reason."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.forms.affine import AffineAnalysis
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns
from hlo_lower.facts.scatter.combine import is_order_free, is_uniform
from hlo_lower.facts.scatter.constant_map import ConstantMap, solve
from hlo_lower.facts.scatter.distinct import UNPROVED, Distinct, find_distinct
from hlo_lower.facts.scatter.facts import (
    Arity,
    Drops,
    Finding,
    FloatMode,
    InBounds,
    Offsets,
    Order,
    OutOfBounds,
    Parts,
    ScatterFacts,
    Strategy,
    Unique,
    Windows,
)
from hlo_lower.facts.scatter.flat import FlatScatter, flatten
from hlo_lower.facts.scatter.layout import Layout, lay_out, single
from hlo_lower.facts.scatter.predicates import Claims, RunClaim
from hlo_lower.facts.scatter.shardings import spread_dims
from hlo_lower.facts.scatter.strategy_costs import costs_of_parts, estimated_costs
from hlo_lower.facts.values.region import ASSIGNING, Combiner, RegionFacts, classify_region
from hlo_lower.facts.values.site import Site
from hlo_lower.ops.subset import MANY_WINDOWS, Subset
from hlo_lower.ops.targets.costs import COSTS, CostTable

# --- where the windows lie: inside, outside or overhanging, as far as the ranges of the indices tell ---

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Placement:
    """Per operand dim and position, as far as it is known: where a window lies. Masks broadcast to the positions.

    Attributes:
      scatter: the scatter.
      inside: starts in [0, D - W].
      outside: starts in which no element lies in the operand.
      missed: starts that are surely not inside: outside or overhanging.
      sure_overhang: known starts that reach out in part; the window does if it is outside in no other dim.
    """

    scatter: CanonicalScatter
    inside: dict[int, Mask]
    outside: dict[int, Mask]
    missed: dict[int, Mask]
    sure_overhang: dict[int, Mask]

    def is_inside(self, dim: int) -> bool:
        """Whether every start in an operand dim is proved to be inside."""
        return dim not in self.inside or bool(np.all(self.inside[dim]))

    def windows(self) -> Windows:
        """Where the windows lie, whatever the policy."""
        if self.scatter.is_empty:
            return Windows.OUTSIDE
        outside = _any_of(self.outside)
        if np.all(_all_of(self.inside)):
            return Windows.INSIDE
        if np.all(outside):
            return Windows.OUTSIDE
        reaching = {d: self.inside[d] | self.sure_overhang[d] for d in self.inside}
        if np.any(_any_of(self.sure_overhang) & _all_of(reaching)):
            return Windows.OVERHANGS
        settled = {
            d: self.inside[d] | self.outside[d] | np.asarray(self.scatter.window[d] == 1)
            for d in self.scatter.index_dims
        }
        return Windows.WHOLE if np.all(_all_of(settled) | outside) else Windows.UNKNOWN

    def in_bounds(self, windows: Windows, oob: OutOfBounds) -> InBounds:
        """Whether updates are written, under a policy."""
        if windows is Windows.INSIDE:
            return InBounds.ALWAYS
        if windows is Windows.OUTSIDE:
            return InBounds.NEVER
        if oob is OutOfBounds.XLA and np.all(_any_of(self.missed)):
            return InBounds.NEVER
        return InBounds.UNKNOWN

    def causes(self) -> tuple[Cause, ...]:
        """What is proved, a cause per indexed dim."""
        told: list[Cause] = []
        for dim in self.scatter.index_dims:
            last = self.scatter.operand_shape[dim] - self.scatter.window[dim]
            told.append(Code.START_WITHIN(dim, last, self.is_inside(dim)))
        return tuple(told) or (Code.NO_INDEXED_DIM(),)


def place(scatter: CanonicalScatter, interval: Interval) -> Placement:
    """Compare each index column with its bounds: a start s is inside in [0, D - W] and outside in s <= -W or s >= D."""
    found = Placement(scatter, {}, {}, {}, {})
    for dim, column in index_columns(scatter, len(interval.shape)):
        low, high = interval.part(column)
        size, window = scatter.operand_shape[dim], scatter.window[dim]
        outside = np.asarray((high <= -window) | (low >= size), np.bool_)
        missed = np.asarray((high < 0) | (low > size - window), np.bool_)
        found.inside[dim] = np.asarray((low >= 0) & (high <= size - window), np.bool_)
        found.outside[dim] = outside
        found.missed[dim] = missed
        found.sure_overhang[dim] = np.asarray((low == high) & missed & ~outside, np.bool_)
    return found


def _all_of(masks: dict[int, Mask]) -> Mask:
    return reduce(np.logical_and, masks.values(), np.asarray(True))


def _any_of(masks: dict[int, Mask]) -> Mask:
    return reduce(np.logical_or, masks.values(), np.asarray(False))


# --- all facts of a scatter ---


def claims_of(
    scatter: CanonicalScatter,
    facts: ScatterFacts,
    placement: Placement,
    interval: Interval,
    flat: FlatScatter | None,
    *,
    is_unique: bool,
    is_permutation: bool,
) -> Claims:
    """All claims of a scatter, from its facts.

    Args:
      scatter: the scatter.
      facts: what is known of it; the claims number its scatter dims as its layout does.
      placement: in which operand dims every start is proved to be inside.
      interval: of the indices.
      flat: the scatter by rows, where rules look at it so.
      is_unique, is_permutation: see `Claims`; proved, not taken from a flag.
    """
    policy: Literal["xla", "spec"] = "xla" if facts.oob is OutOfBounds.XLA else "spec"
    layout, ranges = facts.layout, list[tuple[int, int]]()
    for _, column in () if scatter.is_empty else index_columns(scatter, len(interval.shape)):
        low, high = interval.part(column)
        ranges.append((int(low.min()), int(high.max())))
    return Claims(
        oob=policy,
        positions=scatter.scatter_shape,
        in_bounds=facts.in_bounds.value,
        windows=facts.windows.value,
        inside=tuple(d for d in scatter.index_dims if placement.is_inside(d)),
        ranges=tuple(ranges),
        runs=tuple(
            RunClaim(r.operand_dim, r.scatter_dim, r.is_reversed, r.is_wrapped, r.is_aligned) for r in layout.runs
        ),
        coordinates=layout.batch,
        repeated=layout.repeated,
        starts=facts.offsets_known if facts.in_bounds is not InBounds.NEVER else (),
        batch=() if flat is None else flat.batch,
        placed=() if flat is None else flat.placed,
        is_full=facts.subset is Subset.FULL,
        is_unique=is_unique,
        is_permutation=is_permutation,
        is_sorted=facts.is_sorted,
        is_uniform=flat is not None and is_uniform(scatter, frozenset(flat.placed)),
    )


def classify(
    scatter: CanonicalScatter,
    analysis: IndexAnalysis,
    oob: OutOfBounds,
    float_mode: FloatMode,
    *,
    trust_flags: bool = False,
    costs: CostTable = COSTS,
    has_own: Callable[[Combiner, Unique], bool] = lambda _combiner, _unique: False,
) -> ScatterFacts:
    """All facts of a scatter under a policy and a float mode.

    Args:
      scatter, analysis: the scatter, and what is known of indices.
      oob, float_mode, trust_flags: what was asked for; see `Options`.
      costs: the target's.
      has_own: whether the consumer's own scatter is right for such a region where rows are written once, or not.
    """
    region = classify_region(scatter.region)
    interval = analysis.of(Site(scatter.indices))
    placement = place(scatter, interval)
    windows = placement.windows()
    in_bounds = placement.in_bounds(windows, oob)
    affine = AffineAnalysis(analysis)
    layout = _layout(scatter, affine, interval, region, in_bounds)
    masked = _masked_dims(scatter, layout, placement, in_bounds, oob, windows)
    guarded = (
        ()
        if in_bounds is not InBounds.UNKNOWN
        else tuple(d for d in scatter.index_dims if d not in masked and not placement.is_inside(d))
    )
    subset, subset_why = _subset(scatter, layout, region, in_bounds, masked)
    constant = interval.is_constant or not scatter.index_dims
    solved = None
    if constant and subset in MANY_WINDOWS:
        solved = _solve_constant(scatter, region, interval, windows, oob, costs)
    distinct = UNPROVED
    if subset in MANY_WINDOWS and layout.loose and solved is None:
        distinct = find_distinct(scatter, layout, affine, interval)
    unique, unique_why = _unique(scatter, subset, layout, solved, distinct, trust_flags=trust_flags)
    proof = (interval.evidence,) if interval.evidence is not None else ()
    findings = (
        Finding("subset", subset.value, (subset_why,)),
        Finding("combiner", ", ".join(c.value for c in region.combiners), region.why),
        Finding("windows", windows.value, (*placement.causes(), *proof)),
        Finding("in_bounds", in_bounds.value, (Code.POLICY(oob.value),)),
        Finding("unique", unique.value, (unique_why, *(distinct.evidence if distinct.is_unique else ()))),
        Finding("offsets", "constant" if constant else "runtime", proof),
    )
    order = _order(scatter, region, float_mode)
    is_sorted, flat = False, None
    strategies: dict[Strategy, float] = {}
    is_own = has_own(region.common, Unique.UNKNOWN if guarded or masked else unique)
    if subset in MANY_WINDOWS and solved is None:
        flat = flatten(scatter, layout, (*guarded, *masked), oob)
        # A dropped row's number, or the first row of the next window, may go back.
        is_sorted = distinct.is_sorted and in_bounds is InBounds.ALWAYS and flat.window_rows == 1
        spread = spread_dims(scatter.node.raw)
        strategies = dict(
            estimated_costs(
                flat,
                layout,
                subset,
                region,
                order,
                unique,
                costs,
                is_masked=bool(masked),
                is_permutation=distinct.is_permutation,
                is_sorted=is_sorted,
                has_own=is_own,
                is_spread=spread is None or bool(spread & {*layout.coordinates, *scatter.index_dims}),
            )
        )
    elif is_own and layout.wrapped_runs and not constant and region.common in ASSIGNING:
        flat = flatten(scatter, layout, (*guarded, *masked), oob)
        strategies = dict(costs_of_parts(flat, layout, costs))
    if strategies:
        told = tuple(Code.COSTS(form.value, float(f"{cost / 1000:.3g}")) for form, cost in strategies.items())
        findings += (Finding("strategy", next(iter(strategies)).value, told),)
    if layout.why:
        findings += (Finding("layout", _layout_value(layout), (*layout.why, *layout.proofs)),)
    facts = ScatterFacts(
        subset=subset,
        combiner=region.common,
        windows=windows,
        in_bounds=in_bounds,
        drops=Drops.ELEMENTS if masked else Drops.WINDOWS if guarded else Drops.NOTHING,
        unique=unique,
        offsets=_offsets(subset, solved, constant=constant),
        parts=Parts.SEVERAL if layout.wrapped_runs else Parts.ONE,
        order=order,
        strategy=next(iter(strategies)) if strategies else _strategy_of_one(solved),
        arity=Arity.SINGLE if scatter.arity == 1 else Arity.SEPARABLE if region.separable else Arity.COUPLED,
        oob=oob,
        float_mode=float_mode,
        region=region,
        layout=layout,
        offsets_known=_known_offsets(scatter, layout, interval),
        guarded_dims=guarded,
        masked_dims=masked,
        is_sorted=is_sorted,
        operand_shape=scatter.operand_shape,
        strategies=strategies,
        costs=costs,
        constant_map=solved,
        findings=findings,
        bounds=_bounds(in_bounds, windows, interval, constant=constant),
    )
    # A flag that is trusted is no claim of ours.
    proved = unique if not trust_flags else _unique(scatter, subset, layout, solved, distinct, trust_flags=False)[0]
    is_unique = proved is Unique.PROVED and subset is not Subset.EMPTY
    claims = claims_of(
        scatter, facts, placement, interval, flat, is_unique=is_unique, is_permutation=distinct.is_permutation
    )
    return replace(facts, claims=claims)


def _order(scatter: CanonicalScatter, region: RegionFacts, float_mode: FloatMode) -> Order:
    reassociate = float_mode is FloatMode.REASSOCIATE
    pairs = zip(region.combiners, scatter.region_types, strict=True)
    free = region.separable and all(is_order_free(c, str(t), reassociate=reassociate) for c, t in pairs)
    return Order.FREE if free else Order.KEPT


def _strategy_of_one(solved: ConstantMap | None) -> Strategy:
    """The strategy of one window, or of constant ones whose places are solved."""
    if solved is None:
        return Strategy.FEW_WINDOWS
    if solved.pieces is None:
        return Strategy.MANY
    return Strategy.STRIDED if any(piece.stride > 1 for piece in solved.pieces) else Strategy.FEW_WINDOWS


# --- what the positions do ---


def _layout(
    scatter: CanonicalScatter, affine: AffineAnalysis, interval: Interval, region: RegionFacts, in_bounds: InBounds
) -> Layout:
    if scatter.positions <= 1 or in_bounds is InBounds.NEVER or scatter.is_empty:
        return single(scatter)
    return lay_out(scatter, affine, interval, assigns=not region.reads_current)


def _masked_dims(
    scatter: CanonicalScatter,
    layout: Layout,
    placement: Placement,
    in_bounds: InBounds,
    oob: OutOfBounds,
    windows: Windows,
) -> tuple[int, ...]:
    """Operand dims in which elements are dropped one by one.

    The rows of a run are windows of their own, so they always are, unless all of them lie inside or none. Under
    oob=spec so are the elements of a window that may overhang; where its extent is 1, dropping an element is dropping
    the window.
    """
    if in_bounds is InBounds.NEVER:
        return ()
    masked = {
        r.operand_dim for r in layout.runs if r.is_wrapped or not (r.is_aligned or placement.is_inside(r.operand_dim))
    }
    if in_bounds is InBounds.UNKNOWN and oob is OutOfBounds.SPEC and windows is not Windows.WHOLE:
        masked |= {d for d in scatter.index_dims if scatter.window[d] > 1 and not placement.is_inside(d)}
    return tuple(sorted(masked))


def _offsets(subset: Subset, solved: ConstantMap | None, *, constant: bool) -> Offsets:
    if not constant:
        return Offsets.RUNTIME
    return Offsets.UNSOLVED if subset in MANY_WINDOWS and solved is None else Offsets.CONSTANT


def _known_offsets(scatter: CanonicalScatter, layout: Layout, interval: Interval) -> tuple[int | None, ...]:
    """Per operand dim the start of the one window where it is known; None everywhere for several windows."""
    if layout.positions != 1 or scatter.positions == 0:
        return (None,) * scatter.rank
    known: list[int | None] = [0] * scatter.rank
    lo, hi = interval.full()
    first = [0] * len(scatter.scatter_shape)
    for run in layout.runs:
        first[run.scatter_dim] = run.size - 1 if run.is_reversed else 0
    wrapped = {run.operand_dim for run in layout.wrapped_runs}
    for dim, column in index_columns(scatter, len(interval.shape)):
        low, high = (
            int(np.asarray(bounds[column]).reshape(scatter.scatter_shape)[tuple(first)]) for bounds in (lo, hi)
        )
        known[dim] = low if low == high and dim not in wrapped else None
    return tuple(known)


# --- which part is written ---


def _subset(
    scatter: CanonicalScatter, layout: Layout, region: RegionFacts, in_bounds: InBounds, masked: tuple[int, ...]
) -> tuple[Subset, Cause]:
    if scatter.is_empty:
        return Subset.EMPTY, Code.NO_WINDOWS()
    if in_bounds is InBounds.NEVER:
        return Subset.EMPTY, Code.ALL_DROPPED()
    if region.common is Combiner.NO_OP:
        return Subset.EMPTY, Code.RETURNS_CURRENT()
    window = layout.window
    if not layout.kept:
        return _one_window(scatter, layout, in_bounds, masked)
    if not layout.loose:
        return Subset.BATCHED_TILE, Code.WINDOW_PER_BATCH()
    if prod(window) == 1:
        return Subset.POINTS, Code.SINGLE_ELEMENTS(layout.positions)
    covered = {run.operand_dim for run in layout.runs if run.size == scatter.operand_shape[run.operand_dim]}
    indexed = set(scatter.index_dims) - covered
    batch_dims = {d for d, _ in (*scatter.batching, *layout.batch)} - covered
    whole = all(window[d] == scatter.operand_shape[d] for d in range(scatter.rank) if d not in indexed | batch_dims)
    if whole and all(window[d] == 1 for d in indexed):
        return Subset.FILTER, Code.WHOLE_ROWS(layout.positions)
    return Subset.WINDOWS, Code.WINDOWS_OF(layout.positions, window)


def _one_window(
    scatter: CanonicalScatter, layout: Layout, in_bounds: InBounds, masked: tuple[int, ...]
) -> tuple[Subset, Cause]:
    windows = scatter.positions if layout.runs else 1
    if any(run.operand_dim in masked for run in layout.runs):
        return Subset.ROWS, Code.RUN_OF_ROWS(tuple(run.size for run in layout.runs))
    if layout.window == scatter.operand_shape and in_bounds is InBounds.ALWAYS:
        return Subset.FULL, Code.MERGED(windows, "operand")
    if prod(layout.window) == 1:
        return Subset.POINT, Code.MERGED(windows, "element")
    return Subset.TILE, Code.MERGED(windows, None)


def _unique(
    scatter: CanonicalScatter,
    subset: Subset,
    layout: Layout,
    solved: ConstantMap | None,
    distinct: Distinct,
    *,
    trust_flags: bool,
) -> tuple[Unique, Cause]:
    if scatter.positions <= 1:
        return Unique.PROVED, Code.ONE_WINDOW()
    if subset is Subset.EMPTY:
        return Unique.PROVED, Code.NOTHING_WRITTEN()
    long_runs = [run for run in layout.wrapped_runs if run.size > scatter.operand_shape[run.operand_dim]]
    if not layout.loose and not layout.repeated and not long_runs:
        return Unique.PROVED, (Code.WINDOW_PER_BATCH if layout.kept else Code.ROWS_OF_RUN)()
    if solved is not None:
        if solved.is_unique:
            return Unique.PROVED, Code.CONSTANTS_DIFFER()
        return Unique.UNKNOWN, Code.CONSTANTS_MEET()
    if distinct.why is not None:
        return Unique.PROVED, distinct.why
    flag = scatter.node.attribute("unique_indices")
    if flag is not None and str(flag) == "true":
        if trust_flags:
            return Unique.PROVED, Code.FLAG_TRUSTED()
        return Unique.CLAIMED, Code.FLAG_CLAIMED()
    return Unique.UNKNOWN, Code.NO_CLAIM()


def _solve_constant(
    scatter: CanonicalScatter,
    region: RegionFacts,
    interval: Interval,
    windows: Windows,
    oob: OutOfBounds,
    costs: CostTable,
) -> ConstantMap | None:
    """Where constant windows land, if a rule can use it: each row is written once, or the last write counts."""
    whole = oob is OutOfBounds.XLA or windows in (Windows.INSIDE, Windows.WHOLE)
    few, dense = costs.few_windows, costs.dense_per_window
    solved = solve(scatter, interval, drops_windows=whole, most_pieces=few, dense_per_row=dense)
    if solved is None or (region.reads_current and not solved.is_unique):
        return None
    limit = max(costs.constant_rows, costs.growth * prod(interval.shape))
    return solved if solved.pieces is not None or solved.rows <= limit else None


# --- what the record tells of it ---

_BOUNDING = (Code.CLAMPED, Code.NORMALISED, Code.REMAINDER, Code.IOTA, Code.MASKED, Code.MINIMUM, Code.MAXIMUM)
"""Steps that are told as what bounds an index."""


def _layout_value(layout: Layout) -> str:
    """ "run, batch": what the scatter dims do."""
    words = ["wrapped run" if r.is_wrapped else "reversed run" if r.is_reversed else "run" for r in layout.runs]
    words += ["batch"] * len(layout.batch) + ["repeated"] * len(layout.repeated) + ["loose"] * len(layout.loose)
    return ", ".join(words)


def _bounds(in_bounds: InBounds, windows: Windows, interval: Interval, *, constant: bool) -> Cause:
    """Why no guard is needed: by the last step that bounds an index; or why one is: by the first that does not."""
    if in_bounds is InBounds.NEVER:
        return Code.NOTHING_IN_BOUNDS()
    causes = [step.cause for step in interval.evidence.steps()] if interval.evidence else []
    if in_bounds is InBounds.ALWAYS:
        if any(cause.code is Code.ASSUMED for cause in causes):
            return Code.ASSUMED_INSIDE()
        by = next((cause.code.code for cause in reversed(causes) if cause.code in _BOUNDING), "range")
        return Code.PROVED("constant" if constant else by)
    if windows is Windows.OVERHANGS:
        return Code.GUARDED(Code.OVERHANGS())
    sources = (cause.cause("source") for cause in causes if cause.code is Code.NOT_BOUNDED)
    return Code.GUARDED(next(sources, Code.NOT_KNOWN()))
