"""What is known of a gather, for the registry: how the target takes it, and which form its sizes ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod

import numpy as np

from hlo_lower.base.element_types import WIDE_FLOATS, type_range
from hlo_lower.base.registry import FactsByName
from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ops.targets.costs import CostTable


class TakenGather(Enum):
    """How the target takes it."""

    WHOLE = "whole"
    IN_BOUNDS = "in bounds"  # it is right once its starts are in bounds
    ORDERED = "in order"  # it is right once its positions and windows stand in one order
    AT_OTHERS = "at other starts"  # it is right with starts of another type
    ROWS = "rows"  # it is right where it reads rows by their numbers, all in bounds
    NOT = "not"


class GatherStrategy(Enum):
    """What its sizes ask for where the target does not take it."""

    EMPTY = "empty"
    FEW = "few"
    SHORT_AXIS = "short_axis"
    MANY = "many"


@dataclass(frozen=True)
class GatherFacts(FactsByName):
    """The facts of one gather.

    Attributes:
      taken, strategy: the facts that rules constrain.
      in_bounds: whether every start is proved to be inside; not looked at where the target takes every gather.
      strategies: what each is estimated to cost, in nanoseconds, the cheapest first.
    """

    taken: TakenGather
    strategy: GatherStrategy
    in_bounds: bool
    strategies: Mapping[GatherStrategy, float] = field(default_factory=dict[GatherStrategy, float])

    def with_strategy(self, strategy: GatherStrategy) -> "GatherFacts":
        """The same facts with another of its strategies."""
        return replace(self, strategy=strategy)


def gather_facts(
    gather: CanonicalGather, analysis: IndexAnalysis, *, takes: TakenGather, costs: CostTable
) -> GatherFacts:
    """The facts of a gather.

    Args:
      gather: the gather.
      analysis: the ranges of the module's integers.
      takes: which gathers the target takes: all, those in bounds, or none.
      costs: the target's table.
    """
    in_bounds = takes not in (TakenGather.WHOLE, TakenGather.ORDERED) and is_inside(gather, analysis)
    taken = TakenGather.WHOLE if takes is TakenGather.IN_BOUNDS and in_bounds else takes
    strategies = _costs(gather, costs)
    return GatherFacts(taken, next(iter(strategies)), in_bounds, strategies)


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


def _costs(gather: CanonicalGather, costs: CostTable) -> dict[GatherStrategy, float]:
    window, count = prod(gather.window), gather.count
    read, result = window * costs.element, count * window
    if not result:
        return {GatherStrategy.EMPTY: 0}
    found = {GatherStrategy.MANY: costs.step + count * (costs.loop + read + result * costs.copy_element)}
    if count <= costs.few_windows:
        found[GatherStrategy.FEW] = count * (costs.window + read) + result * costs.pass_element
    element = gather.operand.element_type
    compared = result * prod(gather.shape[d] for d in gather.numbers.start_index_map)
    can_add = element in WIDE_FLOATS or type_range(element) is not None
    if gather.is_rows and can_add and compared <= costs.mask_elements:
        found[GatherStrategy.SHORT_AXIS] = costs.step + compared * (costs.compare + costs.reduce)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))
