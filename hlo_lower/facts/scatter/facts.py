"""The facts that a scatter's lowering is chosen by: a closed set, each with a finite domain."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from hlo_lower.base.causes import Cause
from hlo_lower.base.registry import FactsByName
from hlo_lower.facts.scatter.constant_map import ConstantMap
from hlo_lower.facts.scatter.layout import Layout
from hlo_lower.facts.scatter.predicates import Claims
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.region import ASSIGNING, Combiner, RegionFacts
from hlo_lower.ops.subset import Subset
from hlo_lower.ops.targets.costs import CostTable


class Strategy(Enum):
    """Which of several right forms a scatter takes; `strategy_costs` says which are, and what each costs.

    FEW_WINDOWS: so few windows that each gets ops of its own. SHORT_AXIS: one row per batch coordinate, found by a
    compare over an axis so short that a pass over it costs no more. STRIDED: constant rows at an even distance above 1.
    MASK: every update is the same, so that only where they land counts. INVERSION: each row looks up the last update
    that is for it, by comparing with all; SORTED_INVERSION: by a binary search in the sorted row numbers. REDUCTION:
    each row combines the updates that are for it, by comparing with all; DOT: as a matrix product; SORTED_REDUCTION:
    in runs of the sorted updates. ROUNDS: each row takes its next update, all rows at once, as often as the row with
    most has one. PERMUTATION: each row is written once, so that sorting the updates puts them there.
    OWN_SCATTER: the scatter of the consumer, in a form that its kernel is right for. MANY: one window after the other.
    """

    FEW_WINDOWS = "few_windows"
    SHORT_AXIS = "short_axis"
    STRIDED = "strided"
    MASK = "mask"
    INVERSION = "inversion"
    SORTED_INVERSION = "sorted_inversion"
    REDUCTION = "reduction"
    DOT = "dot"
    SORTED_REDUCTION = "sorted_reduction"
    ROUNDS = "rounds"
    PERMUTATION = "permutation"
    OWN_SCATTER = "own_scatter"
    MANY = "many"


class Windows(Enum):
    """Where the windows lie, whatever the policy."""

    INSIDE = "inside"
    OUTSIDE = "outside"  # each wholly
    WHOLE = "whole"  # each either inside or wholly outside
    OVERHANGS = "overhangs"  # one at least reaches out in part
    UNKNOWN = "unknown"


class InBounds(Enum):
    """Whether updates are written, under the policy asked for."""

    ALWAYS = "always"
    NEVER = "never"
    UNKNOWN = "unknown"


class Drops(Enum):
    """What a lowering has to be able to drop: nothing, whole windows, or single elements of a window."""

    NOTHING = "nothing"
    WINDOWS = "windows"
    ELEMENTS = "elements"


class Unique(Enum):
    """Whether no result element is written twice."""

    PROVED = "proved"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"


class Offsets(Enum):
    """What is known of the starts."""

    CONSTANT = "constant"  # all of them, and what follows is solved at conversion time
    UNSOLVED = "constant_unsolved"  # all of them, but some rows are combined twice, or they are too many
    RUNTIME = "runtime"


class Parts(Enum):
    """How many windows a run makes: a wrapped one comes in two parts (trap 39)."""

    ONE = "one"
    SEVERAL = "several"


class OutOfBounds(Enum):
    """The policy: XLA drops windows, the specification drops elements (openxla/stablehlo#1931)."""

    XLA = "xla"
    SPEC = "spec"


class FloatMode(Enum):
    """Whether float reductions may be reassociated."""

    EXACT = "exact"
    REASSOCIATE = "reassociate"


class Order(Enum):
    """Whether updates of one element can be combined with each other first, in any order, without a bit changing."""

    FREE = "free"
    KEPT = "kept"


class Dialect(Enum):
    """What the module leaves in."""

    STABLEHLO = "stablehlo"
    LINALG = "linalg"


class Arity(Enum):
    """How many operands, and whether their results can be computed apart."""

    SINGLE = "single"
    SEPARABLE = "separable"
    COUPLED = "coupled"


@dataclass(frozen=True)
class Finding:
    """One fact as it was found.

    Attributes:
      name, value: the fact and its value as text.
      steps: what proves it, or why it is not proved, what comes first before what follows; evidence has its places.
    """

    name: str
    value: str
    steps: tuple[Cause | Evidence, ...]


@dataclass(frozen=True)
class ScatterFacts(FactsByName):
    """The facts of one scatter.

    Attributes:
      subset ... float_mode: the facts that rules constrain.
      region: combiner of each operand.
      layout: what the scatter dims do; the window of it has the runs merged in.
      offsets_known: per operand dim the constant start of the one window, or None where it is a runtime value.
      guarded_dims: operand dims in which a window may reach out of the operand, which drops all of it.
      masked_dims: operand dims in which it may, which drops the elements outside.
      is_sorted: whether the rows' numbers are known to ascend, with nothing dropped.
      operand_shape: the operand's extents, which a rule's `When` may ask for.
      strategies: those that are right for many windows at run time, each with its estimated cost in nanoseconds, the
        cheapest first; empty for other scatters.
      costs: the table that the costs are from.
      constant_map: which update lands where, if all indices are constant and the class is solved by that.
      findings: every fact with its proof or its reason, for the record.
      bounds: why the bounds need a guard or none.
      dialect: what the module leaves in.
      claims: what of this speaks of the indices at run time, as data that predicates take.
    """

    subset: Subset
    combiner: Combiner
    windows: Windows
    in_bounds: InBounds
    drops: Drops
    unique: Unique
    offsets: Offsets
    parts: Parts
    order: Order
    strategy: Strategy
    arity: Arity
    oob: OutOfBounds
    float_mode: FloatMode
    region: RegionFacts
    layout: Layout
    offsets_known: tuple[int | None, ...]
    guarded_dims: tuple[int, ...]
    masked_dims: tuple[int, ...]
    is_sorted: bool
    operand_shape: tuple[int, ...]
    strategies: Mapping[Strategy, float]
    costs: CostTable
    constant_map: ConstantMap | None
    findings: tuple[Finding, ...]
    bounds: Cause
    dialect: Dialect = Dialect.STABLEHLO
    claims: Claims | None = None

    def with_strategy(self, strategy: Strategy) -> "ScatterFacts":
        """The same scatter with another of its strategies."""
        return self if strategy is self.strategy else replace(self, strategy=strategy)

    @property
    def kind(self) -> str:
        """See `kind_of`."""
        return kind_of(self.combiner, self.subset)


KINDS = ("insert_slice", "reduction_add", "general")


def kind_of(combiner: Combiner, subset: Subset) -> str:
    """One of `KINDS`: the coarse word of reports."""
    regular = (Subset.FULL, Subset.TILE, Subset.POINT, Subset.ROWS, Subset.BATCHED_TILE)
    if combiner is Combiner.ADD:
        return "reduction_add"
    return "insert_slice" if combiner in ASSIGNING and subset in regular else "general"
