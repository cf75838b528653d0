"""Whether a target takes a scatter as it is, and gives the right numbers for it: then it is kept."""

from collections.abc import Collection

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.facts import Drops, ScatterFacts, Unique, Windows
from hlo_lower.facts.values.region import Combiner
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target


def kept_by(target: Target, scatter: CanonicalScatter, facts: ScatterFacts, when: str) -> Cause | None:
    """Why a scatter is kept: the target takes its combiner on its element type; None where it is not.

    A variadic scatter, one whose region promotes and one whose region does more than its combiner says are never kept.

    Args:
      target: the target.
      scatter, facts: the scatter, and what is known of it.
      when: "always", or "no_lowering" where there is none that the target takes.
    """
    if not target.keep:
        return None
    element = scatter.operands[0].element_type
    if _is_plain(scatter, facts.combiner) and any(
        n.when == when and _is_as_said(n, scatter, facts, element) for n in target.keep
    ):
        return Code.KEPT(target.name, facts.combiner.value, element, when == "no_lowering")
    return None


def has_safe_rows(target: Target, scatter: CanonicalScatter, combiner: Combiner, unique: Unique) -> bool:
    """Whether the target's own scatter is right for rows that are all in bounds, with the region of this one.

    Args:
      target: the target.
      scatter: the scatter.
      combiner: what its region does.
      unique: whether no row is written twice.
    """
    found = [native for native in target.keep if native.when == "safe"]
    if not found or not _is_plain(scatter, combiner):
        return False
    return any(
        combiner.value in native.combiners
        and _is_among(scatter.operands[0].element_type, native.dtypes)
        and (native.unique == "any" or unique is Unique.PROVED)
        for native in found
    )


def _is_plain(scatter: CanonicalScatter, combiner: Combiner) -> bool:
    """Whether a scatter has one operand, and a region that is its combiner, on the operand's type, and nothing else."""
    is_promoted = str(scatter.region_types[0]) != scatter.operands[0].element_type
    return scatter.arity == 1 and not is_promoted and _is_bare(scatter, combiner)


def _is_bare(scatter: CanonicalScatter, combiner: Combiner) -> bool:
    """Whether the region is one operation of both arguments, or returns the update as it is: "assign" is any region
    that does not read the current value."""
    *inner, end = scatter.region.nodes
    if combiner is Combiner.ASSIGN:
        return not inner and end.operands == scatter.region.arguments[1:]
    return len(inner) == 1


def _is_as_said(native: NativeScatter, scatter: CanonicalScatter, facts: ScatterFacts, element: str) -> bool:
    inside = facts.windows is Windows.INSIDE
    # What XLA drops is what the target drops; where elements are dropped one by one, the target would drop more.
    dropped = native.in_bounds == "any" and facts.drops is not Drops.ELEMENTS
    return (
        facts.combiner.value in native.combiners
        and _is_among(element, native.dtypes)
        and _is_among(scatter.indices.element_type, native.index_dtypes)
        and _has_form(native.form, scatter)
        and (inside or dropped)
        and (native.unique == "any" or facts.unique is Unique.PROVED)
    )


def _is_among(name: str, names: Collection[str] | None) -> bool:
    return names is None or name in names


def _has_form(form: str, scatter: CanonicalScatter) -> bool:
    """Whether the dimension numbers are of a form of `NativeScatter`, in the order of a `scatter_nd`."""
    if form == "any":
        return True
    indexed, rank = len(scatter.index_dims), scatter.rank
    return (
        not scatter.batching
        and scatter.index_dims == tuple(range(indexed))
        and scatter.window_dims == tuple(range(indexed, rank))
        and scatter.window[indexed:] == scatter.operand_shape[indexed:]
        and scatter.update_permutation == tuple(range(len(scatter.update_permutation)))
        and scatter.index_vector_dim == len(scatter.indices.shape) - 1
        and (form == "rows" or indexed == rank)
    )
