"""What is known of a gather, for the registry: how the target takes it, and which form its sizes ask for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod

import numpy as np

from hlo_lower.analysis import IndexAnalysis, Site
from hlo_lower.analysis.interval import type_range
from hlo_lower.gather.canonical import CanonicalGather
from hlo_lower.registry import FactsByName
from hlo_lower.scatter.combine import SUMMED_FLOATS
from hlo_lower.scatter.sizes import SizeTable

GATHER = "stablehlo.gather"


class Taken(Enum):
    """How the target takes it."""

    WHOLE = "whole"
    IN_BOUNDS = "in bounds"  # it is right once its starts are in bounds
    NOT = "not"


class GatherForm(Enum):
    """What its sizes ask for where the target does not take it."""

    EMPTY = "empty"
    FEW = "few"
    SHORT_AXIS = "short_axis"
    MANY = "many"


GATHER_DOMAINS: Mapping[str, Iterable[Enum]] = {"taken": Taken, "size": GatherForm}
"""The facts of `stablehlo.gather` for the registry."""


@dataclass(frozen=True)
class GatherFacts(FactsByName):
    """The facts of one gather.

    Attributes:
      taken, size: the facts that rules constrain, one for each of `GATHER_DOMAINS`.
      in_bounds: whether every start is proved to be inside; not looked at where the target takes every gather.
      forms: what each form is estimated to cost, in nanoseconds, the cheapest first.
    """

    domains = GATHER_DOMAINS

    taken: Taken
    size: GatherForm
    in_bounds: bool
    forms: Mapping[GatherForm, float] = field(default_factory=dict[GatherForm, float])

    def in_form(self, form: GatherForm) -> "GatherFacts":
        """The same facts with another of its forms."""
        return replace(self, size=form)


def gather_facts(gather: CanonicalGather, analysis: IndexAnalysis, *, takes: Taken, sizes: SizeTable) -> GatherFacts:
    """The facts of a gather.

    Args:
      gather: the gather.
      analysis: the ranges of the module's integers.
      takes: which gathers the target takes: all, those in bounds, or none.
      sizes: the target's table of costs.
    """
    in_bounds = takes is not Taken.WHOLE and is_inside(gather, analysis)
    taken = Taken.WHOLE if takes is Taken.IN_BOUNDS and in_bounds else takes
    forms = _costs(gather, sizes)
    return GatherFacts(taken, next(iter(forms)), in_bounds, forms)


def is_inside(gather: CanonicalGather, analysis: IndexAnalysis) -> bool:
    """Whether every start is proved to lie in [0, its limit]."""
    if not gather.limits or not gather.count:
        return True
    interval = analysis.of(Site(gather.indices))
    vector = gather.numbers.index_vector_dim
    rank = len(gather.indices.static_shape)
    limits = np.asarray(gather.limits, object)
    if vector < rank:
        limits = limits.reshape([-1 if d == vector else 1 for d in range(rank)])
    return bool(np.all(interval.lo >= 0) and np.all(interval.hi <= limits))


def _costs(gather: CanonicalGather, sizes: SizeTable) -> dict[GatherForm, float]:
    window, count = prod(gather.window), gather.count
    read, result = window * sizes.element, count * window
    if not result:
        return {GatherForm.EMPTY: 0}
    found = {GatherForm.MANY: sizes.step + count * (sizes.loop + read + result * sizes.copy_element)}
    if count <= sizes.few_windows:
        found[GatherForm.FEW] = count * (sizes.window + read) + result * sizes.pass_element
    element = gather.operand.element_type
    compared = result * prod(gather.shape[d] for d in gather.numbers.start_index_map)
    can_add = element in SUMMED_FLOATS or type_range(element) is not None
    if gather.is_rows and can_add and compared <= sizes.mask_elements:
        found[GatherForm.SHORT_AXIS] = sizes.step + compared * (sizes.compare + sizes.reduce)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))
