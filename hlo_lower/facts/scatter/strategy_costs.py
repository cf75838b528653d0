"""Which forms a scatter of many windows can take, and what each costs: the cheapest is its strategy.

When each form is right stands with its rule. The costs are estimates from the table of costs
(`hlo_lower.ops.targets.costs`): they choose between right forms, and nothing that is computed depends on them.
"""

from collections.abc import Mapping
from math import log2, prod

from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.combine import IDEMPOTENT, MULTIPLIED, SUMS, constant_dims, is_float_extreme, is_uniform
from hlo_lower.facts.scatter.facts import Order, Strategy, Unique
from hlo_lower.facts.scatter.flat import FlatScatter
from hlo_lower.facts.scatter.layout import Layout
from hlo_lower.facts.values.region import ASSIGNING, Combiner, RegionFacts
from hlo_lower.ops.subset import Subset
from hlo_lower.ops.targets.costs import CostTable

MASKED = ASSIGNING | IDEMPOTENT


def estimated_costs(
    flat: FlatScatter,
    layout: Layout,
    subset: Subset,
    region: RegionFacts,
    order: Order,
    unique: Unique,
    costs: CostTable,
    *,
    is_masked: bool,
    is_permutation: bool,
    is_sorted: bool,
    is_spread: bool,
    has_own: bool = False,
) -> Mapping[Strategy, float]:
    """The forms that are right for a scatter of many windows, each with what it costs, the cheapest first.

    Args:
      flat: the scatter by rows.
      layout: what its scatter dims do.
      subset: what it writes: BATCHED_TILE, FILTER, POINTS or WINDOWS.
      region: what it does to it.
      order: whether updates of one row can be combined first.
      unique: whether each row is written once.
      costs: the target's.
      is_masked: whether elements of a window may be dropped one by one.
      is_permutation: whether every row is written, and once.
      is_sorted: whether the writes' rows ascend.
      is_spread: whether the operand is spread over devices in a dim where windows are placed. Then a slice gathers
        the operand, once for each window, but a compare is made where the elements are: it costs nothing here.
      has_own: whether the consumer's own scatter is right for rows that are all in bounds.

    Returns:
      Nanoseconds by form.
    """
    scatter = flat.scatter
    operand = prod(scatter.operand_shape) * scatter.arity
    window = prod(layout.window) * scatter.arity * costs.element
    writes = flat.batches * flat.writes
    filled = all(len(constant_dims(v.raw)) == scatter.rank for v in scatter.operands)
    looked_up = costs.step + operand * (costs.fill_element if filled else costs.pass_element)
    pairs, combined = flat.rows * writes, operand * flat.writes
    compared = pairs * costs.compare + _in_parts(pairs, costs) + looked_up
    doublings = log2(writes + 1)
    sort = costs.step + writes * (doublings * costs.sort + flat.writes / 2 * costs.sort_pair)
    ordered = 0 if is_sorted else sort
    search = costs.step + flat.batches * flat.rows * doublings * costs.find
    found: dict[Strategy, float] = {
        Strategy.MANY: layout.positions * (costs.loop + window + operand * costs.copy_element)
    }
    if layout.positions <= costs.few_windows:
        found[Strategy.FEW_WINDOWS] = layout.positions * (costs.window + window)
    if subset is Subset.BATCHED_TILE and not is_masked and is_row_per_batch(scatter, layout):
        found[Strategy.SHORT_AXIS] = 0 if is_spread else looked_up
    combiners = set(region.combiners)
    if combiners <= MASKED and (combiners <= {Combiner.ASSIGN_CONSTANT} or is_uniform(scatter, frozenset(flat.placed))):
        found[Strategy.MASK] = compared
    if not region.reads_current or unique is Unique.PROVED:
        found[Strategy.INVERSION] = compared
        found[Strategy.SORTED_INVERSION] = ordered + search + looked_up
    if region.reads_current and unique is not Unique.PROVED:
        turns = _turns(flat)
        found[Strategy.ROUNDS] = ordered + search + turns * (costs.loop + operand * costs.copy_element + 2 * looked_up)
    if has_own:
        found[Strategy.OWN_SCATTER] = _own(flat, operand, costs) + _drop_cost(flat, operand, region, costs)
    if is_permutation:
        found[Strategy.PERMUTATION] = sort + looked_up
    if order is Order.FREE and region.common is not Combiner.GENERAL:
        elements = [str(t) for t in scatter.region_types]
        reduces = 3 if any(map(is_float_extreme, region.combiners, elements)) else 1
        found[Strategy.REDUCTION] = combined * reduces * costs.reduce + _in_parts(combined, costs) + looked_up
        runs = writes * flat.width * scatter.arity * doublings * 3 * costs.pass_element
        found[Strategy.SORTED_REDUCTION] = ordered + search + runs + looked_up
        if combiners <= SUMS and MULTIPLIED.issuperset(elements):
            columns = 3 if not WIDE_FLOATS.isdisjoint(elements) else 1
            one_hot = pairs * costs.pass_element
            found[Strategy.DOT] = combined * columns * costs.multiply + one_hot + compared + costs.step
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def costs_of_parts(flat: FlatScatter, layout: Layout, costs: CostTable) -> Mapping[Strategy, float]:
    """The forms of a run that may come in two parts, where the consumer's own scatter is right: nanoseconds by form.

    The other one reads and writes two windows. Its rule is for any strategy, so that it is taken where the consumer's
    scatter, whose rule is more specific, is none of them: where that costs more.
    """
    operand, window = prod(flat.scatter.operand_shape), layout.positions * prod(layout.window)
    own, windows = _own(flat, operand, costs), 2 * (costs.window + 2 * window * costs.pass_element)
    few = {Strategy.FEW_WINDOWS: windows}
    return {Strategy.OWN_SCATTER: own} | few if own <= windows else few


def _drop_cost(flat: FlatScatter, operand: int, region: RegionFacts, costs: CostTable) -> float:
    """The further cost where writes may be dropped.

    An assignment finds the last write that is kept and writes it again; a combination makes passes over the operand
    or the updates."""
    if not (flat.by_window or flat.by_row):
        return 0
    if not region.reads_current:
        return 2 * costs.step
    updates = flat.batches * flat.writes * flat.width
    return (2 * operand if has_spare_row(flat) else updates) * costs.pass_element


def has_spare_row(flat: FlatScatter) -> bool:
    """Whether combined writes that are dropped get a row of their own in the consumer's scatter, behind the last one.

    Two passes over the operand, to put it there and to cut it off, in the place of one over the updates.
    """
    return flat.rows <= flat.writes


def _own(flat: FlatScatter, operand: int, costs: CostTable) -> float:
    """The cost of the consumer's own scatter, of rows that leave the operand's dims where they are."""
    rows = flat.in_order
    moved = 0 if rows.is_in_order else 2 * operand * costs.pass_element
    return costs.step + rows.batches * rows.writes * (costs.own_row + rows.width * costs.own_element) + moved


def _turns(flat: FlatScatter) -> float:
    """About how many updates the row with most has, if rows are drawn evenly: the mean and three deviations."""
    mean = flat.writes / max(flat.rows, 1)
    return min(mean + 3 * mean**0.5 + 2, flat.writes)


def _in_parts(elements: int, costs: CostTable) -> float:
    """The cost of a mask that is made in parts."""
    parts = -(-elements // costs.mask_elements)
    return parts * costs.loop if parts > 1 else 0


def is_row_per_batch(scatter: CanonicalScatter, layout: Layout) -> bool:
    """Whether each window has extent 1 where the data places it, and is whole from 0 elsewhere."""
    placed = {*layout.coordinates, *scatter.index_dims}
    runs = {run.operand_dim for run in layout.runs}
    return all(
        layout.window[d] == (1 if d in placed and d not in runs else scatter.operand_shape[d])
        for d in range(scatter.rank)
    )
