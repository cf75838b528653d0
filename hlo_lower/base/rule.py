"""A rule of the registry: what it accepts, the condition beside it, and the errors that tell of rules by these.

What chooses between rules is `hlo_lower.base.registry`, from which these names are imported, too.
"""

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from types import FrameType, UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, get_args, get_type_hints

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.domains import text_of, texts_of

Lowering = TypeVar("Lowering", bound=Callable[..., Any])
Accepted = frozenset[Any]
Without: TypeAlias = tuple[tuple[str, Cause], ...]
"""Names of rules that turned out not to do, each with the reason."""


class Facts(Protocol):
    """What a rule is chosen by: a value for each fact of the op's domains."""

    def __getitem__(self, name: str, /) -> Hashable: ...


class FactsByName:
    """Facts that are attributes of their names: each whose type is an `Enum`, or one of several.

    Attributes:
      domains: the facts that rules constrain, each with its values.
    """

    domains: ClassVar[Mapping[str, Iterable[Enum]]]

    def __init_subclass__(cls) -> None:
        found = {name: _one_of(kind) for name, kind in get_type_hints(cls).items()}
        cls.domains = {name: values for name, values in found.items() if values}

    def __getitem__(self, name: str) -> Enum:
        """The value of a fact of the domains."""
        if name not in self.domains:
            raise KeyError(name)
        value: Enum = getattr(self, name)
        return value


def _one_of(kind: Any) -> tuple[Enum, ...]:
    """The values of a type that is an `Enum`, or one of several; none of another."""
    several = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    enums = [one for one in several if isinstance(one, type) and issubclass(one, Enum)]
    return tuple(chain.from_iterable(enums)) if len(enums) == len(several) else ()


class DoesNotApply(Exception):
    """Raised by a lowering that cannot lower what it was given, with the reason; the next best rule is tried."""

    def __init__(self, reason: str | Cause) -> None:
        super().__init__(reason)
        self.cause = reason if isinstance(reason, Cause) else Code.SAID(reason)


@dataclass(frozen=True)
class When:
    """A condition on the sizes or other facts of an op, beyond those with finite domains.

    Attributes:
      text: what it says ("rows <= 64"), for whoever reads why a rule was not taken.
      holds: takes the facts.
    """

    text: str
    holds: Callable[[Any], bool]


def short_name(name: str) -> str:
    """The name of a rule as reports and `prefer` have it."""
    return name.removeprefix("scatter_to_")


@dataclass(frozen=True)
class Rule:
    """A registered lowering.

    Attributes:
      op: the op that it lowers ("stablehlo.scatter").
      name: the function's name, `X_to_Y`.
      lowering: the function.
      constraints: fact name to accepted values.
      when: a condition beside them; a rule with one beats a rule that is the same without.
      form: its canonical form in a line, for documentation.
      place: "lowering/scatter/one_window.py:31"; of a plug-in the folder and the file, and its origin behind it.
      origin: the plug-in that it comes from, or "".
    """

    op: str
    name: str
    lowering: Callable[..., Any]
    constraints: Mapping[str, Accepted]
    when: When | None
    form: str
    place: str
    origin: str = ""

    @property
    def short_name(self) -> str:
        """The name without what it lowers: "dynamic_update_slice"."""
        return short_name(self.name)

    def misses(self, facts: Facts) -> tuple[Cause, ...]:
        """The facts that it does not accept, each with its value and those that it needs, and its condition if that
        does not hold.

        Raises:
          ConditionError: the condition cannot be told of these facts.
        """
        missed = self.lacks({name: facts[name] for name in self.constraints})
        return missed if missed or self.when is None or self._holds(facts) else (Code.NEEDS(self.when.text),)

    def lacks(self, facts: Mapping[str, Hashable]) -> tuple[Cause, ...]:
        """Those of these facts that it does not accept, each with its value and those that it needs."""
        return tuple(
            Code.MISSES(name, text_of(facts[name]), texts_of(accepted))
            for name, accepted in self.constraints.items()
            if name in facts and facts[name] not in accepted
        )

    def accepts(self, fact: str, value: object) -> bool:
        """Whether its constraints take a value of a fact."""
        accepted = self.constraints.get(fact)
        return accepted is None or value in accepted

    def may_hold(self, facts: Mapping[str, Hashable]) -> bool | None:
        """Whether its condition holds of a few facts; None where it asks for more than these."""
        try:
            return self.when is None or bool(self.when.holds(facts))
        except Exception:  # of facts by name alone it may ask for an attribute, or for one that nobody named
            return None

    def _holds(self, facts: Facts) -> bool:
        assert self.when is not None
        try:
            return bool(self.when.holds(facts))
        except Exception as error:
            raise ConditionError(self, error) from error

    def beats(self, other: "Rule", domains: Mapping[str, Accepted]) -> bool:
        """Whether it is strictly more specific than another rule."""
        pairs = [
            (self.constraints.get(fact, domain), other.constraints.get(fact, domain))
            for fact, domain in domains.items()
        ]
        narrower = any(a < b for a, b in pairs) or (self.when is not None and other.when is None)
        return narrower and all(a <= b for a, b in pairs)

    def classes(self) -> str:
        """The constraints in a line: "subset=Tile|Point|Full, drops=windows"."""
        told = [f"{name}={'|'.join(texts_of(accepted))}" for name, accepted in self.constraints.items()]
        return ", ".join([*told, *([self.when.text] if self.when else [])]) or "anything"


@dataclass(frozen=True)
class Choice:
    """The rule that was chosen and, for each other rule, why it was not."""

    rule: Rule
    rejected: tuple[tuple[Rule, tuple[Cause, ...]], ...]

    def instead(self, wanted: Rule) -> "Choice":
        """The choice of a rule that fits as well, and was asked for."""
        if wanted is self.rule:
            return self
        rejected = [(other, why) for other, why in self.rejected if other is not wanted]
        rejected.append((self.rule, (Code.PREFERRED(wanted.short_name),)))
        return Choice(wanted, tuple(sorted(rejected, key=lambda pair: pair[0].name)))


class ConditionError(Exception):
    """The condition of a rule raised."""

    def __init__(self, rule: Rule, error: Exception) -> None:
        super().__init__(str(error))
        self.rule, self.error = rule, error


class NoRuleError(Exception):
    """No rule fits: the nearest ones, at most three, each with what it lacks, and all that are registered.

    Attributes:
      op: the op.
      nearest: the nearest rules.
      rules: those of the op.
      facts: its facts, as far as rules tell them apart.
    """

    def __init__(
        self,
        op: str,
        nearest: Sequence[tuple[Rule, tuple[Cause, ...]]],
        rules: Sequence[Rule] = (),
        facts: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(op)
        self.op, self.nearest, self.rules, self.facts = op, tuple(nearest), tuple(rules), facts or {}

    def __str__(self) -> str:
        """The op and its facts, then what is near and what there is: made once somebody reads it."""
        told = [f"no lowering for {self.op}{f' with {told_facts(self.facts)}' if self.facts else ''}"]
        told += [
            f"  nearest: {rule.name} ({rule.place}): {english.join_phrases(lacks)}" for rule, lacks in self.nearest
        ]
        return "\n".join([*told, *([f"  registered: {describe_rules(self.rules)}"] if self.rules else [])])


MOST_LISTED = 12
"""Rules that an error lists by what they accept."""


def describe_rules(rules: Sequence[Rule]) -> str:
    """List rules by what they accept, in a line: "mode=repeat, target=npu (clone_to_repeat); ..."."""
    told = [f"{rule.classes()} ({rule.name})" for rule in rules[:MOST_LISTED]]
    return "; ".join([*told, *([f"{len(rules) - MOST_LISTED} more"] if len(rules) > MOST_LISTED else [])])


def told_facts(facts: Mapping[str, object]) -> str:
    """Facts in a line: "mode=repeat, target=npu"."""
    return ", ".join(f"{name}={text_of(value)}" for name, value in facts.items())


def is_same_condition(one: When | None, other: When | None) -> bool:
    """Whether two rules have the same condition, or none."""
    return one is other or (one is not None and other is not None and one.text == other.text)


def place_of(lowering: Callable[..., Any]) -> str:
    """Folder, file and line of a function ("lowering/scatter/one_window.py:31"), without the machine's own path."""
    code = getattr(inspect.unwrap(lowering), "__code__", None)
    return "?" if code is None else _in_package(str(code.co_filename), int(code.co_firstlineno))


def place_of_caller(frame: FrameType | None) -> str:
    """The place from which a function was called, given its frame."""
    caller = None if frame is None else frame.f_back
    return "?" if caller is None else _in_package(caller.f_code.co_filename, caller.f_lineno)


def _in_package(file: str, line: int) -> str:
    """A place without the machine's own path: from the package on, or the folder, the file and the line."""
    parts = file.replace("\\", "/").split("/")
    own = next((k + 1 for k in reversed(range(len(parts) - 1)) if parts[k] == __name__.partition(".")[0]), -2)
    return f"{'/'.join(parts[own:])}:{line}"
