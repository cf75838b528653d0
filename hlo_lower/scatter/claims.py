"""What a classification claims of a scatter, in the form that the predicates take (`hlo_lower.scatter.predicates`)."""

from typing import Literal

from hlo_lower.analysis import Interval
from hlo_lower.scatter.bounds import Placement
from hlo_lower.scatter.canonical import CanonicalScatter, index_columns
from hlo_lower.scatter.facts import InBounds, OutOfBounds, Windows
from hlo_lower.scatter.flat import FlatScatter
from hlo_lower.scatter.layout import Layout
from hlo_lower.scatter.predicates import Claims, RunClaim
from hlo_lower.scatter.uniform import is_uniform


def claims_of(
    scatter: CanonicalScatter,
    layout: Layout,
    placement: Placement,
    interval: Interval,
    oob: OutOfBounds,
    windows: Windows,
    in_bounds: InBounds,
    starts: tuple[int | None, ...],
    flat: FlatScatter | None,
    *,
    is_full: bool,
    is_unique: bool,
    is_permutation: bool,
    is_sorted: bool,
) -> Claims:
    """All claims of a scatter, from its facts.

    Args:
      scatter: the scatter.
      layout: of its scatter dims; the claims number them as it does.
      placement: in which operand dims every start is proved to be inside.
      interval: of the indices.
      oob, windows, in_bounds: the policy, and where the windows lie.
      starts: per operand dim the start of the one window where it is known.
      flat: the scatter by rows, where rules look at it so.
      is_full, is_unique, is_permutation, is_sorted: see `Claims`; proved, not taken from a flag.
    """
    policy: Literal["xla", "spec"] = "xla" if oob is OutOfBounds.XLA else "spec"
    ranges: list[tuple[int, int]] = []
    for _, column in () if scatter.is_empty else index_columns(scatter, len(interval.shape)):
        low, high = interval.part(column)
        ranges.append((int(low.min()), int(high.max())))
    return Claims(
        oob=policy,
        positions=scatter.scatter_shape,
        in_bounds=in_bounds.value,
        windows=windows.value,
        inside=tuple(d for d in scatter.index_dims if placement.is_inside(d)),
        ranges=tuple(ranges),
        runs=tuple(
            RunClaim(r.operand_dim, r.scatter_dim, r.is_reversed, r.is_wrapped, r.is_aligned) for r in layout.runs
        ),
        coordinates=layout.batch,
        repeated=layout.repeated,
        starts=starts if in_bounds is not InBounds.NEVER else (),
        batch=() if flat is None else flat.batch,
        placed=() if flat is None else flat.placed,
        is_full=is_full,
        is_unique=is_unique,
        is_permutation=is_permutation,
        is_sorted=is_sorted,
        is_uniform=flat is not None and is_uniform(scatter, frozenset(flat.placed)),
    )
