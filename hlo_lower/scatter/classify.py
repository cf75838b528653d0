"""Classify a canonical scatter: compute every fact once, each with its evidence or, where it fails, its reason."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.analysis import Combiner, Evidence, IndexAnalysis, Interval, RegionFacts, classify_region
from hlo_lower.graph import Graph
from hlo_lower.scatter.canonical import CanonicalScatter, index_columns
from hlo_lower.scatter.facts import (
    Arity,
    Drops,
    FloatMode,
    InBounds,
    Offsets,
    OutOfBounds,
    ScatterFacts,
    Unique,
    Windows,
)
from hlo_lower.scatter.record import Fact
from hlo_lower.subset import Subset

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Placement:
    """Per operand dim and position, as far as it is known: where a window lies. Masks broadcast to the positions."""

    inside: dict[int, Mask]
    outside: dict[int, Mask]
    missed: dict[int, Mask]  # surely not inside: outside or overhanging
    sure_overhang: dict[int, Mask]


def classify(
    graph: Graph,
    scatter: CanonicalScatter,
    analysis: IndexAnalysis,
    oob: OutOfBounds,
    float_mode: FloatMode,
    *,
    trust_flags: bool = False,
) -> ScatterFacts:
    """All facts of a scatter under a policy and a float mode."""
    region = classify_region(scatter.region)
    interval = analysis.interval(scatter.indices)
    placement = _place(scatter, interval)
    windows = _windows(scatter, placement)
    in_bounds = _in_bounds(scatter, placement, windows, oob)
    subset, subset_why = _subset(scatter, region, in_bounds)
    unique, unique_why = _unique(scatter, subset, interval, trust_flags=trust_flags)
    constant = interval.is_constant or not scatter.index_dims
    proof = interval.evidence

    def steps() -> tuple[str, ...]:
        return proof.lines(graph) if proof else ()

    facts = (
        Fact.known("subset", subset.value, subset_why),
        Fact.known("combiner", ", ".join(c.value for c in region.combiners), *region.why),
        Fact("windows", windows.value, lambda: (*_bound_lines(scatter, placement), *steps())),
        Fact.known("in_bounds", in_bounds.value, f"under oob={oob.value}"),
        Fact.known("unique", unique.value, unique_why),
        Fact("offsets", "constant" if constant else "runtime", steps),
    )
    return ScatterFacts(
        subset=subset,
        combiner=region.common,
        windows=windows,
        in_bounds=in_bounds,
        drops=_drops(in_bounds, windows, oob),
        unique=unique,
        offsets=Offsets.CONSTANT if constant else Offsets.RUNTIME,
        arity=Arity.SINGLE if scatter.arity == 1 else Arity.SEPARABLE if region.separable else Arity.COUPLED,
        oob=oob,
        float_mode=float_mode,
        region=region,
        offsets_known=_offsets_known(scatter, interval),
        unchecked_dims=tuple(d for d in scatter.index_dims if not np.all(placement.inside[d])),
        evidence=facts,
        bounds_note=_bounds_note(scatter, in_bounds, windows, interval, constant=constant),
    )


# --- where the windows lie ---


def _place(scatter: CanonicalScatter, interval: Interval) -> _Placement:
    """Compare each index column with its bounds: a start s is inside in [0, D - W] and outside in s <= -W or s >= D."""
    place = _Placement({}, {}, {}, {})
    lo, hi = interval.full()
    for dim, column in index_columns(scatter, len(interval.shape)):
        low: NDArray[Any] = np.asarray(lo[column])
        high: NDArray[Any] = np.asarray(hi[column])
        size, window = scatter.operand_shape[dim], scatter.window[dim]
        place.inside[dim] = np.asarray((low >= 0) & (high <= size - window), np.bool_)
        place.outside[dim] = np.asarray((high <= -window) | (low >= size), np.bool_)
        place.missed[dim] = np.asarray((high < 0) | (low > size - window), np.bool_)
        place.sure_overhang[dim] = np.asarray((low == high) & place.missed[dim] & ~place.outside[dim], np.bool_)
    return place


def _all_of(masks: list[Mask]) -> Mask:
    return np.logical_and.reduce(masks) if masks else np.asarray(True)


def _any_of(masks: list[Mask]) -> Mask:
    return np.logical_or.reduce(masks) if masks else np.asarray(False)


def _is_empty(scatter: CanonicalScatter) -> bool:
    return 0 in (scatter.positions, prod(scatter.window), prod(scatter.operand_shape))


def _windows(scatter: CanonicalScatter, place: _Placement) -> Windows:
    if _is_empty(scatter):
        return Windows.OUTSIDE
    inside, outside = _all_of(list(place.inside.values())), _any_of(list(place.outside.values()))
    if np.all(inside):
        return Windows.INSIDE
    if np.all(outside):
        return Windows.OUTSIDE
    if np.any(_any_of(list(place.sure_overhang.values())) & ~outside):
        return Windows.OVERHANGS
    settled = [place.inside[d] | place.outside[d] | np.asarray(scatter.window[d] == 1) for d in scatter.index_dims]
    return Windows.WHOLE if np.all(_all_of(settled) | outside) else Windows.UNKNOWN


def _in_bounds(scatter: CanonicalScatter, place: _Placement, windows: Windows, oob: OutOfBounds) -> InBounds:
    if windows is Windows.INSIDE:
        return InBounds.ALWAYS
    if windows is Windows.OUTSIDE:
        return InBounds.NEVER
    if oob is OutOfBounds.XLA and np.all(_any_of(list(place.missed.values()))):
        return InBounds.NEVER
    return InBounds.UNKNOWN


def _drops(in_bounds: InBounds, windows: Windows, oob: OutOfBounds) -> Drops:
    if in_bounds is not InBounds.UNKNOWN:
        return Drops.NOTHING
    if oob is OutOfBounds.XLA or windows is Windows.WHOLE:
        return Drops.WINDOWS
    return Drops.ELEMENTS


def _offsets_known(scatter: CanonicalScatter, interval: Interval) -> tuple[int | None, ...]:
    """Per operand dim the start of the one window where it is known; None everywhere for several windows."""
    if scatter.positions != 1:
        return (None,) * scatter.rank
    known: list[int | None] = [0] * scatter.rank
    lo, hi = interval.full()
    for dim, column in index_columns(scatter, len(interval.shape)):
        low, high = int(np.asarray(lo[column]).reshape(-1)[0]), int(np.asarray(hi[column]).reshape(-1)[0])
        known[dim] = low if low == high else None
    return tuple(known)


# --- which part is written ---


def _subset(scatter: CanonicalScatter, region: RegionFacts, in_bounds: InBounds) -> tuple[Subset, str]:
    if _is_empty(scatter):
        return Subset.EMPTY, "no index vectors, an empty window or an empty operand"
    if in_bounds is InBounds.NEVER:
        return Subset.EMPTY, "every window is dropped"
    if region.common is Combiner.NO_OP:
        return Subset.EMPTY, "the region returns the current value"
    window, batching_dims = scatter.window, {d for d, _ in scatter.batching}
    if scatter.positions == 1:
        if window == scatter.operand_shape and in_bounds is InBounds.ALWAYS:
            return Subset.FULL, "one window of the operand's shape at 0"
        if prod(window) == 1:
            return Subset.POINT, "one window of one element"
        return Subset.TILE, "one window"
    batch_positions = {position for _, position in scatter.batching}
    if all(size == 1 or n in batch_positions for n, size in enumerate(scatter.scatter_shape)):
        return Subset.BATCHED_TILE, "one window for each batch coordinate"
    if prod(window) == 1:
        return Subset.POINTS, f"{scatter.positions} windows of one element"
    indexed = set(scatter.index_dims)
    whole = all(window[d] == scatter.operand_shape[d] for d in range(scatter.rank) if d not in indexed | batching_dims)
    if whole and all(window[d] == 1 for d in indexed):
        return Subset.FILTER, f"{scatter.positions} rows: extent 1 in the indexed dims, whole in the others"
    return Subset.WINDOWS, f"{scatter.positions} windows of shape {shape_text(window)}"


def _unique(scatter: CanonicalScatter, subset: Subset, interval: Interval, *, trust_flags: bool) -> tuple[Unique, str]:
    if scatter.positions <= 1:
        return Unique.PROVED, "one window"
    if subset is Subset.BATCHED_TILE:
        return Unique.PROVED, "one window for each batch coordinate"
    if interval.is_constant and all(scatter.window[d] == 1 for d in scatter.index_dims) and not scatter.batching:
        ivd = scatter.index_vector_dim
        values = interval.values if ivd < len(interval.shape) else interval.values[..., None]
        rows = np.moveaxis(values, ivd, -1).reshape(scatter.positions, -1)
        if len({tuple(row) for row in rows.tolist()}) == scatter.positions:
            return Unique.PROVED, "constant indices, all different"
        return Unique.UNKNOWN, "constant indices, some equal"
    flag = scatter.node.attribute("unique_indices")
    if flag is not None and str(flag) == "true":
        if trust_flags:
            return Unique.PROVED, "unique_indices = true, trusted (--trust-flags)"
        return Unique.CLAIMED, "unique_indices = true claims it; a claim proves nothing without --trust-flags"
    return Unique.UNKNOWN, "runtime indices, no claim"


# --- words for the reader ---


def shape_text(shape: tuple[int | None, ...]) -> str:
    """A shape as MLIR writes it: "1x8x64x16"; "scalar" for rank 0, "?" for a dynamic size."""
    return "x".join("?" if size is None else str(size) for size in shape) or "scalar"


def _bound_lines(scatter: CanonicalScatter, place: _Placement) -> tuple[str, ...]:
    lines: list[str] = []
    for dim in scatter.index_dims:
        last = scatter.operand_shape[dim] - scatter.window[dim]
        told = "proved" if np.all(place.inside[dim]) else "not proved"
        lines.append(f"dim {dim}: start in [0, {last}] {told}")
    return tuple(lines) or ("no dim is indexed: the start is 0",)


def _bounds_note(
    scatter: CanonicalScatter, in_bounds: InBounds, windows: Windows, interval: Interval, *, constant: bool
) -> str:
    if in_bounds is InBounds.NEVER:
        return "nothing in bounds"
    steps = list(interval.evidence.steps()) if interval.evidence else []
    if in_bounds is InBounds.ALWAYS:
        if constant:
            return "proved (constant)"
        return f"proved ({_first_word(steps) or 'range'})"
    if windows is Windows.OVERHANGS:
        return "guarded: overhangs"
    causes = [s.text.removeprefix("not bounded: ") for s in steps if s.text.startswith("not bounded: ")]
    return f"guarded: {causes[0]}" if causes else "guarded"


def _first_word(steps: list[Evidence]) -> str:
    for step in reversed(steps):
        if step.text.startswith(("clamped", "normalised", "remainder", "iota", "masked", "minimum", "maximum")):
            return step.text.split(" ")[0]
    return ""
