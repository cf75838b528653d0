"""The registry of lowering rules: it knows no op, only op names, facts with finite domains, and rules over them.

A constraint is a set of accepted values of one fact; a fact without a constraint accepts all. Rule A beats rule B when
each of A's sets lies within B's and one strictly so. There are no priorities and no registration order: two rules that
fit the same facts, neither beating the other and no third one beating both, are an error of whoever registered them,
and `CompositeLoweringRegistry.check` finds it without any module.

The model is multiple dispatch (plum, "Ambiguity"; Julia's method specificity), over facts instead of types.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, combinations, product
from types import UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, get_args, get_type_hints

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.errors import RegistryError

Lowering = TypeVar("Lowering", bound=Callable[..., Any])
Accepted = frozenset[Enum]
Without: TypeAlias = tuple[tuple[str, Cause], ...]
"""Names of rules that turned out not to do, each with the reason."""


class Facts(Protocol):
    """What a rule is chosen by: a value for each fact of the op's domains."""

    def __getitem__(self, name: str, /) -> Enum: ...


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
        missed = tuple(
            Code.MISSES(name, facts[name].value, _values(accepted))
            for name, accepted in self.constraints.items()
            if facts[name] not in accepted
        )
        return missed if missed or self.when is None or self._holds(facts) else (Code.NEEDS(self.when.text),)

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
        told = [f"{name}={_names(accepted)}" for name, accepted in self.constraints.items()]
        return ", ".join([*told, *([self.when.text] if self.when else [])]) or "anything"


def _names(accepted: Iterable[object]) -> str:
    return "|".join(_values(accepted))


def _values(accepted: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted(str(value.value) if isinstance(value, Enum) else repr(value) for value in accepted))


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
    """No rule fits: the nearest ones, at most three, each with what it lacks."""

    def __init__(self, op: str, nearest: Sequence[tuple[Rule, tuple[Cause, ...]]]) -> None:
        super().__init__(f"no lowering for {op}")
        self.nearest = tuple(nearest)


class RuleList:
    """Rules of one family, written down where they are defined; `CompositeLoweringRegistry.extend` takes them in.

    A plug-in is such a list under a name of the entry point group `hlo_lower.rules`.

    Example:
      >>> rules = hl.RuleList()
      >>> @rules.lowers("stablehlo.scatter", form="the operand, wrongly")
      ... def scatter_to_my_operand(op):
      ...     return op.scatter.promoted_operands(op.build)
      >>> len(rules.entries)
      1
    """

    def __init__(self) -> None:
        self.entries: list[tuple[str, Callable[..., Any], str, When | None, Mapping[str, Iterable[Enum]]]] = []

    def lowers(
        self, op: str, *, form: str = "", when: When | None = None, **constraints: Iterable[Enum]
    ) -> Callable[[Lowering], Lowering]:
        """Write a lowering down under an op and constraints on its facts.

        Nothing is said of what it builds: that is held against the target once it is built, and where the target
        refuses it, the next best rule is tried.

        Args:
          op: the op that it lowers ("stablehlo.scatter").
          form: the canonical form in a line.
          when: a condition on sizes or other facts.
          **constraints: for each fact that matters the values that it takes; a fact that is not named may be anything.
        """

        def register(lowering: Lowering) -> Lowering:
            self.entries.append((op, lowering, form, when, constraints))
            return lowering

        return register


class CompositeLoweringRegistry:
    """Rules by op, chosen by facts.

    Args:
      domains: for each op the facts that describe it, each with its finite set of values.

    Example:
      >>> from hlo_lower.lowering.kinds import default_registry
      >>> registry = default_registry()
      >>> registry.extend(hl.RuleList())
      >>> hl.lower("decode.mlir", registry=registry).scatters_left
      0
    """

    def __init__(self, domains: Mapping[str, Mapping[str, Iterable[Enum]]]) -> None:
        self._domains = {
            op: {fact: frozenset(values) for fact, values in facts.items()} for op, facts in domains.items()
        }
        self._rules: dict[str, list[Rule]] = {op: [] for op in domains}
        self._chosen: dict[tuple[object, ...], Choice] = {}

    def lowers(
        self, op: str, *, form: str = "", when: When | None = None, **constraints: Iterable[Enum]
    ) -> Callable[[Lowering], Lowering]:
        """Register a lowering under an op and constraints on its facts.

        Raises:
          RegistryError: the op, a fact or a value is unknown, a constraint is empty, or the same rule is there already.
        """

        def register(lowering: Lowering) -> Lowering:
            self.add(op, lowering, form=form, when=when, constraints=constraints)
            return lowering

        return register

    def extend(self, rules: RuleList, *, origin: str = "") -> None:
        """Register every rule of a list.

        Args:
          rules: the list.
          origin: the plug-in that it comes from; it is shown with the rule's place.

        Raises:
          RegistryError: as `lowers`.
        """
        for op, lowering, form, when, constraints in rules.entries:
            self.add(op, lowering, form=form, when=when, constraints=constraints, origin=origin)

    def add(
        self,
        op: str,
        lowering: Callable[..., Any],
        *,
        form: str = "",
        when: When | None = None,
        constraints: Mapping[str, Iterable[Enum]],
        origin: str = "",
    ) -> Rule:
        """Register a lowering; `lowers` is the same as a decorator."""
        place = f"{_place(lowering)} ({origin})" if origin else _place(lowering)
        name = getattr(lowering, "__name__", "")
        if not callable(lowering) or not isinstance(name, str) or not name.isidentifier():
            raise RegistryError(f"{place}: {lowering!r} is not a function with a name")
        if gone := [word for word in ("emits", "spared") if word in constraints]:
            told = "what a rule builds is looked at once it is built"
            raise RegistryError(f"{place}: {name}: {gone[0]} is no longer declared: {told}; leave it out")
        if when is not None and type(when) is not When:
            raise RegistryError(f"{place}: {name}: when is a When(text, holds), not {when!r}")
        if op not in self._domains:
            raise RegistryError(f"{place}: {name} lowers {op}, which has no domains; known: {', '.join(self._domains)}")
        accepted = {fact: _accepted(f"{place}: {name}: {fact}", values) for fact, values in constraints.items()}
        for fact, values in accepted.items():
            domain = self._domains[op].get(fact)
            if domain is None:
                known = ", ".join(self._domains[op])
                raise RegistryError(f"{place}: {name} constrains {fact}, which is no fact of {op}; known: {known}")
            if not values or not values <= domain:
                raise RegistryError(f"{place}: {name}: {fact} must be some of {_names(domain)}, not {_names(values)!r}")
        for other in self._rules[op]:
            alike = other.constraints == accepted and (other.when is None) == (when is None)
            is_named_so = other.short_name == short_name(name)
            if is_named_so or alike:
                same = "name" if is_named_so else "constraints"
                raise RegistryError(f"{place}: {name} has the {same} of {other.name} at {other.place}")
        rule = Rule(op, name, lowering, accepted, when, form, place, origin)
        self._rules[op].append(rule)
        self._chosen.clear()
        return rule

    @property
    def ops(self) -> tuple[str, ...]:
        """The names under which rules can be registered."""
        return tuple(self._domains)

    def rules(self, op: str) -> tuple[Rule, ...]:
        """The rules of an op by name."""
        return tuple(sorted(self._rules.get(op, ()), key=lambda rule: rule.name))

    def check(self) -> None:
        """Find ambiguities: enumerate, for each op, the facts as far as any rule tells them apart.

        Raises:
          RegistryError: two unbeaten rules fit the same facts; the message names both places and the facts.
        """
        for op, domains in self._domains.items():
            self._check_rules(op, self.rules(op), domains)

    def _check_rules(self, op: str, rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> None:
        representatives = _representatives(rules, domains)
        for one, other in combinations(rules, 2):
            if one.beats(other, domains) or other.beats(one, domains):
                continue
            # Only where both fit can they be ambiguous, and only if nothing beats either that is sure to fit.
            shared = [
                [value for value in values if all(_accepts(rule, fact, value) for rule in (one, other))]
                for fact, values in representatives.items()
            ]
            sure = [rule for rule in rules if rule.when is None or rule in (one, other)]
            for values in product(*shared):
                facts = dict(zip(representatives, values, strict=True))
                fitting = [rule for rule in sure if all(_accepts(rule, fact, value) for fact, value in facts.items())]
                unbeaten = self._unbeaten(fitting, domains)
                if one in unbeaten and other in unbeaten:
                    listed = " and ".join(f"{rule.name} ({rule.place})" for rule in unbeaten)
                    told = ", ".join(f"{fact}={value.value}" for fact, value in facts.items())
                    raise RegistryError(f"{op}: {listed} are both most specific for {told}")

    def select(self, op: str, facts: Facts, without: Without = ()) -> Choice:
        """The most specific rule that fits the facts.

        Args:
          op: the op.
          facts: its facts.
          without: names of rules that are no candidates, each with the reason.

        Raises:
          NoRuleError: none fits.
          RegistryError: two do, neither more specific (where `check` was not called, or without the one that is).
          ConditionError: the condition of a rule raises.
        """
        if op not in self._domains:
            raise NoRuleError(op, ())
        conditions = tuple(not rule.misses(facts) for rule in self._rules[op] if rule.when is not None)
        key = (op, without, conditions, *(facts[name] for name in self._domains[op]))
        if key not in self._chosen:
            self._chosen[key] = self._select(op, facts, dict(without))
        return self._chosen[key]

    def _select(self, op: str, facts: Facts, without: Mapping[str, Cause]) -> Choice:
        fitting: list[Rule] = []
        rejected: list[tuple[Rule, tuple[Cause, ...]]] = []
        distance: dict[str, tuple[int, str]] = {}
        for rule in self.rules(op):
            misses = rule.misses(facts)
            if misses or rule.name in without:
                rejected.append((rule, (*misses, *filter(None, [without.get(rule.name)]))))
                distance[rule.name] = (sum(miss.code is not Code.NEEDS for miss in misses), rule.name)
            else:
                fitting.append(rule)
        if not fitting:
            # What fits the facts comes first: then it is the target, or a condition, that stands in the way.
            raise NoRuleError(op, sorted(rejected, key=lambda pair: distance[pair[0].name])[:3])
        unbeaten = self._unbeaten(fitting, self._domains[op])
        if len(unbeaten) > 1:
            raise RegistryError(f"{op}: {' and '.join(f'{r.name} ({r.place})' for r in unbeaten)} both fit")
        chosen = unbeaten[0]
        rejected.extend((rule, (Code.LESS_SPECIFIC(chosen.short_name),)) for rule in fitting if rule is not chosen)
        return Choice(chosen, tuple(sorted(rejected, key=lambda pair: pair[0].name)))

    @staticmethod
    def _unbeaten(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> list[Rule]:
        return [rule for rule in rules if not any(other.beats(rule, domains) for other in rules)]


def _accepts(rule: Rule, fact: str, value: Enum) -> bool:
    """Whether a rule's constraints take a value of a fact."""
    accepted = rule.constraints.get(fact)
    return accepted is None or value in accepted


def _representatives(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> dict[str, list[Enum]]:
    """For each fact one value of each set of values that no rule tells apart."""
    found: dict[str, list[Enum]] = {}
    for fact, domain in domains.items():
        classes: dict[tuple[bool, ...], Enum] = {}
        for value in sorted(domain, key=lambda v: str(v.value)):
            classes.setdefault(tuple(value in r.constraints.get(fact, domain) for r in rules), value)
        found[fact] = list(classes.values())
    return found


def _accepted(what: str, values: Iterable[Enum]) -> Accepted:
    try:
        return frozenset(values)
    except TypeError:
        raise RegistryError(f"{what} must be a set of values, not {values!r}") from None


def _place(lowering: Callable[..., Any]) -> str:
    """Folder, file and line of a function ("lowering/scatter/one_window.py:31"), without the machine's own path."""
    code = getattr(inspect.unwrap(lowering), "__code__", None)
    if code is None:
        return "?"
    file, line = str(code.co_filename), int(code.co_firstlineno)
    parts = file.replace("\\", "/").split("/")
    own = next((k + 1 for k in reversed(range(len(parts) - 1)) if parts[k] == __name__.partition(".")[0]), -2)
    return f"{'/'.join(parts[own:])}:{line}"
