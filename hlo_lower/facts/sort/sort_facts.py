"""What is known of a sort, for the registry: the forms that are right, with what each costs."""

from dataclasses import dataclass
from enum import Enum
from math import prod

from hlo_lower.base.registry import FactsByName
from hlo_lower.facts.sort.canonical_sort import CanonicalSort
from hlo_lower.ops.targets.costs import CostTable


@dataclass(frozen=True)
class ExchangeStage:
    """A stage.

    Attributes:
      block: p, a power of two.
      distance: of the rows that are compared, an odd multiple of p.
      is_odd: whether the upper ones lie in odd blocks of p rows, the lower ones in even blocks; else the other way.
    """

    block: int
    distance: int
    is_odd: bool


def stages_of(rows: int) -> list[ExchangeStage]:
    """The stages that sort so many rows, in order."""
    found: list[ExchangeStage] = []
    highest = 1 << max((rows - 1).bit_length() - 1, 0)
    block = highest if rows > 1 else 0
    while block:
        found.append(ExchangeStage(block, block, is_odd=False))
        step = highest
        while step > block:
            found.append(ExchangeStage(block, step - block, is_odd=True))
            step //= 2
        block //= 2
    return [stage for stage in found if stage.distance < rows]


MOST_PAIRS = 1 << 26
"""Most pairs of rows that are compared at once."""

MOST_ROUNDS = 256
"""Most rounds that are written out, where there is no loop."""


class SortStrategy(Enum):
    """What its sizes ask for."""

    NOTHING = "nothing"  # no row has another one to be compared with
    STABLE_SORTS = "stable_sorts"  # the target sorts by one key
    TOP_K = "top_k"  # its top_k of all rows is a sort
    ROUNDS = "rounds"
    LOOPED_ROUNDS = "looped_rounds"
    RANKS = "ranks"
    NETWORK = "network"
    LOOPED_NETWORK = "looped_network"


@dataclass(frozen=True)
class SortFacts(FactsByName):
    """The facts of one sort, with one of its strategies.

    Attributes:
      strategy: the fact that rules constrain.
      rows: how many rows are sorted, for conditions.
      read: how many of them are read.
      gathered: the operands whose rows are gathered once their order is known; others are chosen by selects along the
        way, or by a sum over what a comparison chose.
      in_bits: whether floats are compared as integers.
      in_f32: whether narrower ones are so in f32.
      one_nan: the numbers of keys whose NaN may be taken for the positive one.
      numbering: the operands that hold the positions along the sorted dim: what an argsort carries.
      cost: nanoseconds, estimated.
    """

    strategy: SortStrategy
    rows: int
    read: int
    gathered: frozenset[int]
    in_bits: bool
    cost: float
    one_nan: frozenset[int] = frozenset()
    numbering: frozenset[int] = frozenset()
    in_f32: bool = False


def sort_strategies(
    sort: CanonicalSort,
    costs: CostTable,
    gathered: frozenset[int],
    *,
    in_bits: bool,
    in_f32: bool = False,
    one_nan: frozenset[int] = frozenset(),
    numbering: frozenset[int] = frozenset(),
    has_sort: bool = False,
    has_top_k: bool = False,
) -> list[SortFacts]:
    """The facts of a sort with each of its strategies, the cheapest first.

    Args:
      sort: the sort.
      costs: the target's table.
      gathered: the operands whose rows the target gathers.
      in_bits: whether it takes what compares floats as integers.
      in_f32: whether it does so of narrower floats in f32.
      one_nan: the numbers of keys whose NaN may be taken for the positive one.
      numbering: the operands that hold the positions along the sorted dim.
      has_sort: whether it takes a sort by one key, upwards.
      has_top_k: whether it takes a top_k of the integers that the keys are.
    """
    n = sort.shape[sort.dim]
    found = {SortStrategy.NOTHING: 0.0} if n < 2 or not prod(sort.shape) else _costs(sort, costs)
    if SortStrategy.NOTHING not in found:
        elements, doublings = prod(sort.shape), (n - 1).bit_length()
        if has_sort:
            found[SortStrategy.STABLE_SORTS] = len(sort.keys) * elements * doublings * costs.sort
        if has_top_k:  # of the first key as many as are read
            whole = (len(sort.keys) - 1) * doublings
            found[SortStrategy.TOP_K] = (whole + sort.last.bit_length()) * elements * costs.top_k
    return [
        SortFacts(strategy, n, sort.rows, gathered, in_bits, cost, one_nan, numbering, in_f32)
        for strategy, cost in sorted(found.items(), key=lambda item: item[1])
    ]


def _costs(sort: CanonicalSort, costs: CostTable) -> dict[SortStrategy, float]:
    """What each strategy is estimated to cost. What grows with the number of stages or rounds comes behind the loop
    where they are many: it is for targets without loops."""
    (a, n, c), k = sort.canonical_shape, sort.rows
    elements, columns = a * n * c, len(sort.keys) + 1
    passed = elements * columns * costs.exchange
    stages = len(stages_of(n))
    looped = costs.loop + 2 * passed + elements * columns * costs.copy_element
    found: dict[SortStrategy, float] = {}
    if elements * n <= MOST_PAIRS:
        found[SortStrategy.RANKS] = elements * (n + k) * len(sort.keys) * costs.rank_pair
    if sort.first == 0 and k < n:
        turn = costs.exchange_stage + 2 * passed
        found[SortStrategy.LOOPED_ROUNDS] = k * (turn + looped)
        if k <= MOST_ROUNDS:
            found[SortStrategy.ROUNDS] = k * (turn if k <= costs.few_windows else turn + looped + 1)
    found[SortStrategy.LOOPED_NETWORK] = stages * (costs.exchange_stage + looped)
    stage = costs.exchange_stage + passed
    found[SortStrategy.NETWORK] = stages * (stage if stages <= costs.few_stages else stage + looped + 1)
    return found
