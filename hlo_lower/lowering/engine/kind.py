"""A kind of op: under which name its rules stand, how one of them is read, what a rule is given, and what is told."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.registry import Facts, Rule, RuleList
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.decision import Chosen, Decision, Kept, Refused
from hlo_lower.lowering.engine.legality import Refusal, refused_of
from hlo_lower.lowering.engine.op import OpLowering
from hlo_lower.lowering.options import Options
from hlo_lower.ops.targets.target import Target

if TYPE_CHECKING:
    from hlo_lower.lowering.engine.context import Context


class Stage(Enum):
    """When the ops of a kind are looked at."""

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
    """

    facts: Facts
    own: str = ""
    rule: str = ""


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

    @property
    def replaced(self) -> tuple[Node, ...]:
        """The ops whose results a rule's values replace, in order."""
        return tuple(self.readers) or (self.node,)


def nothing(_facts: Facts, _build: Builder) -> object:
    """What a rule is given of an op that has no form."""
    return None


def as_it_stands(context: "Context", node: Node) -> Callable[[Facts, Builder], object]:
    """What a rule is given of an op that has no canonical form."""
    return lambda facts, build: OpLowering(node, facts, context.graph, build)


class Kind(ABC):
    """A kind of op.

    Attributes:
      name: under which its rules are registered.
      op: the name of the ops; one that ends in "." begins it.
      ops: their names, where there are several; `op` is then what they are called together.
      stage: when they are looked at.
      domains: the facts that rules constrain.
      families: its rules.
      owned: names of the attributes that make it what it is; others go over to what replaces it.
    """

    name: ClassVar[str]
    op: ClassVar[str]
    ops: ClassVar[frozenset[str]] = frozenset()
    stage: ClassVar[Stage]
    domains: ClassVar[Mapping[str, Iterable[Enum]]]
    families: ClassVar[Sequence[RuleList]]
    owned: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def read(self, context: "Context", node: Node) -> Subject | None:
        """What is known of an op; None where it is none of the kind, or needs nothing."""

    def concerns(self, options: Options) -> bool:
        """Whether there is an op of the kind that the target does not take as it is."""
        target = options.target
        return target.restricts_dtypes or any(target.refuses_op(op) is not None for op in self.ops or (self.op,))

    def owns(self, node: Node) -> frozenset[str]:
        """The attributes of an op that do not go over to what replaces it."""
        return self.owned

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """What the target refuses of what a rule built."""
        return refused_of(target, graph, self.judged(target, built))

    def judged(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """Those of the nodes that a rule built which the target has to take, now or once their types are others."""
        return built

    def tell(self, context: "Context", subject: Subject, decision: Decision) -> Change | None:
        """What became of an op, while it still stands; None where that needs no mention."""
        where = str(context.graph.location(subject.node))
        match decision:
            case Chosen(choice=choice):
                became = Code.BECAME(choice.rule.form, choice.rule.short_name, None)
                return Change(Outcome.LOWERED, subject.label, became, where)
            case Kept():
                return None
            case Refused():
                return Change(Outcome.LEFT, subject.label, self.left(context, subject, decision), where)

    def left(self, context: "Context", subject: Subject, refused: Refused) -> Cause:
        """Why an op is left; one without any form is of dynamic shape, where its kind does not say otherwise."""
        if not subject.candidates:
            return Code.NEEDS_SIZES()
        lacking = (Code.LACKS(rule.short_name, why) for rule, why in self.nearest(context, subject, refused))
        return Code.NO_FORM_TAKEN(context.target.name, tuple(lacking))

    def nearest(
        self, context: "Context", subject: Subject, refused: Refused
    ) -> Sequence[tuple[Rule, tuple[Cause, ...]]]:
        """The rules that are told of where an op is left, each with what it lacks."""
        return refused.nearest[:1]

    def title(self, rule: Rule) -> str:
        """What a rule is for, for a reader: "gather, taken not, size few"."""
        named = (f"{name} {values_of(accepted)}" for name, accepted in rule.constraints.items())
        return ", ".join([self.name.removeprefix("stablehlo."), *named])


def values_of(accepted: Iterable[Enum]) -> str:
    """Values of a fact in a line: "inner|last"."""
    return "|".join(sorted(str(value.value) for value in accepted))
