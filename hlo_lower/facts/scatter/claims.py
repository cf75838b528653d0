"""What a classification claims of a scatter, as `hlo_lower.facts.scatter.predicates` evaluates it."""

from typing import Literal

from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.scatter.bounds import Placement
from hlo_lower.facts.scatter.canonical import CanonicalScatter, index_columns
from hlo_lower.facts.scatter.facts import InBounds, OutOfBounds, ScatterFacts
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.facts.scatter.predicates import Claims, RunClaim
from hlo_lower.facts.scatter.uniform import is_uniform
from hlo_lower.ops.subset import Subset


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
