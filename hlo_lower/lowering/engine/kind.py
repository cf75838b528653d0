"""A kind of op: under which name its rules stand, how one of them is read, what a rule is given, and what is told."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from hlo_lower.base.arguments import no_rule
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.domains import texts_of
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.base.registry import Choice, CompositeLoweringRegistry, Facts, Rule, RuleList
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.facts import ScatterFacts, Strategy
from hlo_lower.facts.scatter.flat import FlatScatter, flatten
from hlo_lower.facts.scatter.layout import Arrangement
from hlo_lower.facts.scatter.shardings import is_partitioned, unreduced_scatters
from hlo_lower.facts.values.value_numbering import ValueNumbering
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.attributes import SHARDINGS
from hlo_lower.lowering.engine.legality import Refusal, refused_of
from hlo_lower.lowering.engine.op_facts import OpFacts
from hlo_lower.lowering.options import Options
from hlo_lower.ops.names import SCATTER
from hlo_lower.ops.refused_forms import refuses_forms
from hlo_lower.ops.targets.costs import CostTable
from hlo_lower.ops.targets.target import Target


class Stage(Enum):
    """When the ops of a kind are looked at."""

    VARIANTS = "variants"  # composites whose parameters are declared; what they become is looked at by all that follow
    LEGALIZED = "legalized"  # where portable input is made plain, before 64-bit integers are made narrower
    FLATTENED = "flattened"  # control flow, and notes that say nothing, which a target does not take
    LOWERED = "lowered"  # what a target does not take, before scatters
    SCATTERS = "scatters"
    SORTED = "sorted"  # what indices of scatters may be told to be distinct by, and so after them
    COMPLEX = "complex"  # complex numbers that a target does not take; what that builds may be lowered, too
    TYPES = "types"  # element types that a target does not take, after all rules that build ops
    RANKS = "ranks"  # tensors of more dims than it takes; what is built holds the types that are there


@dataclass(frozen=True)
class Candidate:
    """Facts under which an op may be lowered: one of several for it.

    Attributes:
      facts: what is known of the op, with one strategy.
      own: a fact that a rule has to constrain to count here; "": any rule counts.
      rule: the only rule that is meant; "": any.
      op: under which name the rules stand; "": that of the op's kind.
    """

    facts: Facts
    own: str = ""
    rule: str = ""
    op: str = ""


@dataclass(frozen=True)
class Chosen:
    """A rule lowers it.

    Attributes:
      facts: what is known of it, in the form that the rule is for.
      choice: the rule, and why each other one was not taken.
    """

    facts: Facts
    choice: Choice


@dataclass(frozen=True)
class Kept:
    """It stays as it is, and why: the target takes it, or it was asked for."""

    why: Cause


@dataclass(frozen=True)
class Refused:
    """It has no lowering.

    Attributes:
      error: for whoever cannot go on without one.
      why: what it lacks.
      nearest: the rules that lack least, each with what it lacks.
    """

    error: NotLoweredError
    why: Cause
    nearest: tuple[tuple[Rule, tuple[Cause, ...]], ...] = ()


Decision: TypeAlias = Chosen | Kept | Refused
"""What becomes of an op: a rule lowers it, it is kept, or there is no lowering that the target takes."""


F = TypeVar("F")


@dataclass(frozen=True)
class OpLowering(Generic[F]):
    """One op to be lowered. A rule takes it and returns the values that replace the op's results.

    Attributes:
      node: the op.
      facts: what is known of it.
      graph: the module.
      build: builds in front of the op.
    """

    node: Node
    facts: F
    graph: Graph
    build: Builder


@dataclass(frozen=True)
class ScatterLowering:
    """One scatter to be lowered. A rule takes it and returns the values that replace the scatter's results.

    Attributes:
      scatter: the scatter in canonical form.
      facts: what is known of it.
      graph: the module, for the functions that the region calls.
      build: builds in front of the scatter.
    """

    scatter: CanonicalScatter
    facts: ScatterFacts
    graph: Graph
    build: Builder

    @property
    def arrangement(self) -> Arrangement:
        """The scatter under its layout."""
        return Arrangement(self.scatter, self.facts.layout)

    @property
    def flat(self) -> FlatScatter:
        """The scatter by rows."""
        facts = self.facts
        return flatten(self.scatter, facts.layout, (*facts.guarded_dims, *facts.masked_dims), facts.oob)


@dataclass(frozen=True)
class Preference:
    """The order in which forms that are right are tried: what the user prefers (`--prefer`), then the cheapest first.

    Attributes:
      rules: rules that are taken wherever they are right; the first one that is counts.
      costs: the target's table, with the entries that the user gave.
    """

    rules: tuple[Rule, ...]
    costs: CostTable

    @classmethod
    def of(cls, told: Sequence[str], costs: CostTable, rules: Sequence[Rule]) -> "Preference":
        """Read names of rules and entries of the table.

        Raises:
          InputError: there is no such rule or entry, or its value is not a number above 0.
        """
        known = {rule.short_name: rule for rule in rules}
        wanted: list[Rule] = []
        for text in told:
            name, equals, value = text.partition("=")
            if equals:
                costs = _with_entry(costs, name, value)
            elif name in known:
                wanted.append(known[name])
            else:
                raise no_rule("--prefer", name, known, "; costs are NAME=NUMBER")
        return cls(tuple(wanted), costs)

    def candidates(self, facts: ScatterFacts) -> list[Candidate]:
        """The candidates of a scatter in the order in which they are tried.

        A rule for any strategy is that of one window after the other: in others it waits until all were tried. Where
        it is preferred, it is taken in that one.
        """
        strategies = tuple(facts.strategies) or (facts.strategy,)
        found: list[Candidate] = []
        for rule in self.rules:
            own = strategies
            if "strategy" not in rule.constraints:
                own = (Strategy.MANY,) if Strategy.MANY in strategies else strategies[-1:]
            found += [Candidate(facts.with_strategy(strategy), rule=rule.name) for strategy in own]
        for strategy in strategies:
            waits = strategy not in (Strategy.MANY, strategies[-1])
            found.append(Candidate(facts.with_strategy(strategy), own="strategy" if waits else ""))
        return found


def _with_entry(costs: CostTable, name: str, value: str) -> CostTable:
    try:
        number: object = float(value)
    except ValueError:
        number = value
    try:
        return costs.with_entry(name, number)
    except ValueError as error:
        raise InputError("--prefer", str(error), next_step=f"{name}=64; hlo-lower rules lists the entries") from None


@dataclass
class Context:
    """A module on its way to a target; for as long as its ops are read, none of them is changed.

    Attributes:
      graph: the module.
      options: how it is lowered.
      registry: the rules.
      read: what was read before, for twins.
      left: ops of control flow that stay, so that what stands in them is lowered alone.
      is_carried: whether ops have been computed on other element types, where theirs are refused and that does.
    """

    graph: Graph
    options: Options
    registry: CompositeLoweringRegistry
    read: dict[Hashable, object] = field(default_factory=dict[Hashable, object])
    left: set[Node] = field(default_factory=set[Node])
    is_carried: bool = False

    def afresh(self, graph: Graph | None = None, *, is_carried: bool | None = None) -> "Context":
        """The same, of which nothing is known yet: of a graph that was changed, or of another one."""
        carried = self.is_carried if is_carried is None else is_carried
        return Context(graph or self.graph, self.options, self.registry, is_carried=carried)

    @property
    def target(self) -> Target:
        """Who reads the module."""
        return self.options.target

    @cached_property
    def analysis(self) -> IndexAnalysis:
        """The ranges of the module's integers."""
        return IndexAnalysis(self.graph, loop_ranges=self.options.loop_ranges)

    @cached_property
    def numbering(self) -> ValueNumbering:
        """What is computed in the same way from the same values."""
        return ValueNumbering(self.graph)

    @cached_property
    def unreduced_nodes(self) -> Mapping[Node, str]:
        """The scatters that the module calls unreduced."""
        return unreduced_scatters(self.graph)

    @cached_property
    def is_partitioned(self) -> bool:
        """Whether the module is for several devices."""
        return is_partitioned(self.graph.module.operation)

    @cached_property
    def preference(self) -> Preference:
        """What the user prefers.

        Raises:
          InputError: there is no such rule or size.
        """
        return Preference.of(self.options.prefer, self.target.costs_there, self.registry.rules(SCATTER))

    @cached_property
    def numbers(self) -> Mapping[Node, int]:
        """The number of each scatter, in program order."""
        return {node: number for number, node in enumerate(self.graph.scatters, start=1)}

    def op_facts(self, node: Node, facts: Facts) -> OpFacts:
        """The facts that choose a rule for an op: those that its kind read, and those of every op."""
        return OpFacts(facts, node, self.target.name)

    def place(self, node: Node) -> str:
        """Where a node comes from, for a message."""
        location = self.graph.location(node)
        return f"{location.file}:{location.line}:{location.column}" if location.line else self.graph.name


@dataclass(frozen=True)
class Subject:
    """An op as its kind reads it.

    Attributes:
      kind: the kind.
      node: the op.
      label: what it is in a message ("stablehlo.scatter", 'stablehlo.composite "odml.softmax"').
      candidates: in the order in which they are tried; none where no rule could be for it.
      given: what a rule is given, from the facts that it was chosen by and a builder in front of the op.
      told: its facts in a line, for an error.
      next_step: what to do where it has no lowering, for an error.
      otherwise: what can be done instead of lowering it ("--skip '#3' leaves this scatter"), for an error.
      equivalence: equal for ops of which the same rules turn out not to do; None where that is not known.
      mesh: of the sharding that calls its result unreduced; None where none does.
      readers: ops that read all that is read of it, and are replaced in its place; none where it is replaced itself.
      problem: why no rule could be for it, for an error; None where that is not said.
    """

    kind: "Kind"
    node: Node
    label: str
    candidates: Sequence[Candidate]
    given: Callable[[Any, Builder], object]
    told: str = ""
    next_step: str = ""
    otherwise: str = ""
    equivalence: Hashable = None
    mesh: str | None = None
    readers: Sequence[Node] = ()
    problem: Cause | None = None

    @property
    def replaced_nodes(self) -> tuple[Node, ...]:
        """The ops whose results a rule's values replace, in order."""
        return tuple(self.readers) or (self.node,)


class Kind(ABC):
    """A kind of op.

    Attributes:
      name: under which its rules are registered.
      op: the name of the ops; one that ends in "." begins it.
      ops: their names, where there are several; `op` is then what they are called together.
      stage: when they are looked at.
      domains: the facts that rules constrain.
      families: its rules.
      owned: names of the attributes that make it what it is; others go over to what replaces it. None where only
        shardings go over.
    """

    name: ClassVar[str]
    op: ClassVar[str]
    ops: ClassVar[frozenset[str]] = frozenset()
    stage: ClassVar[Stage]
    domains: ClassVar[Mapping[str, Iterable[Enum]]]
    families: ClassVar[Sequence[RuleList]]
    owned: ClassVar[frozenset[str] | None] = frozenset()

    @abstractmethod
    def read(self, context: Context, node: Node) -> Subject | None:
        """What is known of an op; None where it is none of the kind, or needs nothing."""

    def subject(self, context: Context, node: Node, *facts: Facts, label: str = "", told: str = "") -> Subject:
        """An op that has no canonical form, by the facts of each form in which it can be lowered; there may be none."""
        candidates = [Candidate(known) for known in facts]

        def op_lowering(known: Any, build: Builder) -> object:
            return OpLowering(node, known, context.graph, build)

        return Subject(self, node, label or node.name, candidates, op_lowering, told)

    def concerns(self, options: Options) -> bool:
        """Whether there is an op of the kind that the target does not take as it is, or not in each form."""
        target = options.target
        refused = (target.refuses_op(op) is not None for op in self.ops or (self.op,))
        return target.restricts_dtypes or refuses_forms(target, self.name) or any(refused)

    def owns(self, node: Node) -> frozenset[str]:
        """The attributes of an op that do not go over to what replaces it."""
        return frozenset(mlir.attributes_of(node.raw)) - SHARDINGS if self.owned is None else self.owned

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """What the target refuses of what a rule built."""
        return refused_of(target, graph, self.nodes_to_judge(target, built))

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """The built nodes that the target has to accept, now or once their types are others."""
        return built

    def tell(self, context: Context, subject: Subject, decision: Decision) -> Change | None:
        """What became of an op, while it still stands; None where that needs no mention."""
        where = str(context.graph.location(subject.node))
        match decision:
            case Chosen(choice=choice):
                became = Code.BECAME(choice.rule.form, choice.rule.short_name, None)
                return Change(Outcome.LOWERED, subject.label, became, where)
            case Kept():
                return None
            case Refused():
                return Change(Outcome.LEFT, subject.label, self.why_left(context, subject, decision), where)

    def why_left(self, context: Context, subject: Subject, refused: Refused) -> Cause:
        """The reason why an op stays. An op without candidates has dynamic shapes, unless its kind says otherwise."""
        if not subject.candidates:
            return Code.NEEDS_SIZES()
        lacking = (Code.LACKS(rule.short_name, why) for rule, why in self.nearest(context, subject, refused))
        return Code.NO_FORM_TAKEN(context.target.name, tuple(lacking))

    def nearest(self, context: Context, subject: Subject, refused: Refused) -> Sequence[tuple[Rule, tuple[Cause, ...]]]:
        """The rules that are told of where an op is left, each with what it lacks."""
        return refused.nearest[:1]

    def title(self, rule: Rule) -> str:
        """What a rule is for, for a reader: "gather, taken not, size few"."""
        return f"{self.name.removeprefix('stablehlo.')}, {constraints_of(rule)}".removesuffix(", ")


def constraints_of(rule: Rule) -> str:
    """What a rule constrains, in a line: "taken not, size few"."""
    return ", ".join(f"{name} {values_of(accepted)}" for name, accepted in rule.constraints.items())


def values_of(accepted: Iterable[object]) -> str:
    """Values of a fact in a line: "inner|last"."""
    return "|".join(texts_of(accepted))
