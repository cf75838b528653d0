"""The registry of lowering rules: it knows no op, only op names, facts with finite domains, and rules over them.

A constraint is a set of accepted values of one fact; a fact without a constraint accepts all. Rule A beats rule B when
each of A's sets lies within B's and one strictly so. There are no priorities and no registration order: two rules that
fit the same facts, neither beating the other and no third one beating both, are an error of whoever registered them,
and `CompositeLoweringRegistry.check` finds it without any module. Only of two rules with conditions (`When`) an op has
to tell whether both hold.

The ops are those that the registry is made with, and composites whose parameters are declared (`declare`): these are
facts like any others. Every op has `dtype`, `layout` and `target` besides.

The model is multiple dispatch (plum, "Ambiguity"; Julia's method specificity), over facts instead of types.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, combinations, product
from math import prod
from types import FrameType, UnionType
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, get_args, get_type_hints

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.domains import EVERY, Declared, Domain, Other, text_of, texts_of
from hlo_lower.base.errors import RegistryError

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
    return "|".join(texts_of(accepted))


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
      nearest: the nearest rules.
      rules: those of the op.
    """

    def __init__(
        self,
        op: str,
        nearest: Sequence[tuple[Rule, tuple[Cause, ...]]],
        rules: Sequence[Rule] = (),
        facts: Mapping[str, object] | None = None,
    ) -> None:
        told = [f"no lowering for {op}{f' with {_told(facts)}' if facts else ''}"]
        told += [f"  nearest: {rule.name} ({rule.place}): {english.listed(lacks)}" for rule, lacks in nearest]
        if rules:
            told.append(f"  registered: {registered(rules)}")
        super().__init__("\n".join(told))
        self.nearest, self.rules = tuple(nearest), tuple(rules)


MOST_TRIED = 100_000
"""Combinations of facts that a look-up tries."""

MOST_LISTED = 12
"""Rules that an error lists by what they accept."""


def registered(rules: Sequence[Rule]) -> str:
    """Rules by what they accept, in a line: "mode=repeat, target=npu (clone_to_repeat); ..."."""
    told = [f"{rule.classes()} ({rule.name})" for rule in rules[:MOST_LISTED]]
    return "; ".join([*told, *([f"{len(rules) - MOST_LISTED} more"] if len(rules) > MOST_LISTED else [])])


def _told(facts: Mapping[str, object]) -> str:
    """Facts in a line: "mode=repeat, target=npu"."""
    return ", ".join(f"{name}={text_of(value)}" for name, value in facts.items())


class _Registers(ABC):
    """What rules are written down in: each way to say so."""

    @abstractmethod
    def register(
        self, op: str, lowering: Callable[..., Any], *, form: str = "", when: When | None = None, **constraints: object
    ) -> object:
        """Register a lowering; `lowers` is the same as a decorator, and says what the arguments are."""

    @abstractmethod
    def _declare(self, declared: Declared) -> None: ...

    def declare(
        self, op: str, *, otherwise: str = "error", defaults: Mapping[str, object] | None = None, **parameters: object
    ) -> None:
        """Declare the parameters of a composite, once, so that rules can be registered for its variants.

        A composite of this name is one of the declared variants or an error: with an attribute that is not declared,
        or a value outside of its domain, it is none. So is a custom call that calls this name, by its `backend_config`.

        Args:
          op: the composite's name ("my.expand_clone").
          otherwise: what becomes of a variant without a rule: "error", or a "call" of the decomposition.
          defaults: the values of parameters that an op may leave out.
          **parameters: for each parameter its values (an `Enum`, or a set of texts, numbers or truth values), or a type
            (int, float, str, tuple) of any value, which conditions and rules read from their facts. `dtype`, `layout`
            and `target` are facts of every op; named here, they have these values alone, and for another target the
            declaration does not stand.

        Raises:
          RegistryError: a domain is empty or has two values of one text, a default is outside of its domain, a name is
            taken, or the op is declared otherwise already.

        Example:
          >>> rules = hl.RuleList()
          >>> rules.declare("my.expand_clone", mode={"repeat", "tile"}, copies=int, defaults={"mode": "repeat"})
          >>> @rules.composite("my.expand_clone", mode="tile", target="npu")
          ... def expand_clone_to_tile(op): ...
        """
        place = _place_of(inspect.currentframe())
        self._declare(Declared.of(op, parameters, defaults or {}, otherwise, place))

    def lowers(
        self, op: str, *, form: str = "", when: When | None = None, **constraints: object
    ) -> Callable[[Lowering], Lowering]:
        """Register a lowering under an op and constraints on its facts.

        Nothing is said of what it builds: that is held against the target once it is built, and where the target
        refuses it, the next best rule is tried.

        Args:
          op: the op that it lowers ("stablehlo.scatter"), or the name of a composite that is declared.
          form: the canonical form in a line.
          when: a condition on sizes or other facts.
          **constraints: for each fact that matters the value that it takes, or several; a fact that is not named may be
            anything.

        Raises:
          RegistryError: the op, a fact or a value is unknown, a constraint is empty, or the same rule is there already;
            of a `RuleList` once a registry takes it in.
        """

        def register(lowering: Lowering) -> Lowering:
            self.register(op, lowering, form=form, when=when, **constraints)
            return lowering

        return register

    def composite(
        self, op: str, *, form: str = "", when: When | None = None, **parameters: object
    ) -> Callable[[Lowering], Lowering]:
        """Register a lowering for variants of a composite that is declared: `lowers`, named by what it is for."""
        return self.lowers(op, form=form, when=when, **parameters)


class RuleList(_Registers):
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
        self.entries: list[tuple[str, Callable[..., Any], str, When | None, Mapping[str, object]]] = []
        self.declared: list[Declared] = []

    def register(
        self, op: str, lowering: Callable[..., Any], *, form: str = "", when: When | None = None, **constraints: object
    ) -> None:
        """Write a lowering down; `lowers` is the same as a decorator, and says what the arguments are."""
        self.entries.append((op, lowering, form, when, constraints))

    def _declare(self, declared: Declared) -> None:
        self.declared.append(declared)


class CompositeLoweringRegistry(_Registers):
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
            op: _with_every({fact: Domain.of(values) for fact, values in facts.items()})
            for op, facts in domains.items()
        }
        self._rules: dict[str, list[Rule]] = {op: [] for op in domains}
        self._declared: dict[str, Declared] = {}
        self._chosen: dict[tuple[object, ...], Choice] = {}
        self._told_apart: dict[str, Mapping[str, Accepted]] = {}

    def _declare(self, declared: Declared) -> None:
        known = self._declared.get(declared.op)
        if known is None and declared.op in self._domains:
            raise RegistryError(f"{declared.place}: {declared.op} is an op, whose facts are known")
        if known is None:
            self._declared[declared.op] = declared
            self._domains[declared.op] = _with_every(declared.domains)
            self._rules[declared.op] = []
        elif not known.is_same(declared):
            raise RegistryError(f"{declared.place}: {declared.op} is declared otherwise at {known.place}")

    def register(
        self, op: str, lowering: Callable[..., Any], *, form: str = "", when: When | None = None, **constraints: object
    ) -> Rule:
        """Register a lowering; `lowers` is the same as a decorator, and says what the arguments are.

        Returns:
          The rule.

        Raises:
          RegistryError: as `lowers`.
        """
        return self.add(op, lowering, form=form, when=when, constraints=constraints)

    def take_declared(self, rules: RuleList, *, origin: str = "") -> None:
        """Declare what a list declares; it may be declared already.

        Args:
          rules: the list.
          origin: the plug-in that it comes from.

        Raises:
          RegistryError: as `declare`.
        """
        for declared in rules.declared:
            self._declare(replace(declared, place=f"{declared.place} ({origin})") if origin else declared)

    def extend(self, rules: RuleList, *, origin: str = "") -> None:
        """Declare what a list declares, and register its rules.

        Args:
          rules: the list.
          origin: the plug-in that it comes from; it is shown with the rule's place.

        Raises:
          RegistryError: as `declare` and `lowers`.
        """
        self.take_declared(rules, origin=origin)
        for op, lowering, form, when, constraints in rules.entries:
            self.add(op, lowering, form=form, when=when, constraints=constraints, origin=origin)

    def add(
        self,
        op: str,
        lowering: Callable[..., Any],
        *,
        form: str = "",
        when: When | None = None,
        constraints: Mapping[str, object],
        origin: str = "",
    ) -> Rule:
        """Register a lowering by its constraints as a mapping; `register` has them as keywords."""
        place = f"{_place(lowering)} ({origin})" if origin else _place(lowering)
        name = getattr(lowering, "__name__", "")
        if not callable(lowering) or not isinstance(name, str) or not name.isidentifier():
            raise RegistryError(f"{place}: {lowering!r} is not a function with a name")
        if gone := [word for word in ("emits", "spared") if word in constraints]:
            told = "what a rule builds is looked at once it is built"
            raise RegistryError(f"{place}: {name}: {gone[0]} is no longer declared: {told}; leave it out")
        if when is not None and type(when) is not When:
            raise RegistryError(f"{place}: {name}: when is a When(text, holds), not {when!r}")
        accepted = self._accepted(f"{place}: {name}", op, constraints)
        for other in self._rules[op]:
            alike = other.constraints == accepted and _is_same_condition(other.when, when)
            is_named_so = other.short_name == short_name(name)
            if is_named_so or alike:
                same = "name" if is_named_so else "constraints"
                raise RegistryError(f"{place}: {name} has the {same} of {other.name} at {other.place}")
        rule = Rule(op, name, lowering, accepted, when, form, place, origin)
        self._rules[op].append(rule)
        self._chosen.clear()
        self._told_apart.pop(op, None)
        return rule

    def _accepted(self, who: str, op: str, constraints: Mapping[str, object]) -> dict[str, Accepted]:
        """The accepted values of each fact that is constrained."""
        if op not in self._domains:
            known = ", ".join(self._domains)
            how = f"the parameters of a composite are declared first: rules.declare({op!r}, ...)"
            raise RegistryError(f"{who} lowers {op}, which has no domains; known: {known}; {how}")
        found: dict[str, Accepted] = {}
        for fact, values in constraints.items():
            domain = self._domains[op].get(fact)
            if domain is None:
                known = ", ".join(self._domains[op])
                kind = self._declared[op].types.get(fact) if op in self._declared else None
                how = f"; {fact} is any {kind.__name__}, which a When(...) asks for" if kind else ""
                raise RegistryError(f"{who} constrains {fact}, which is no fact of {op}; known: {known}{how}")
            found[fact] = domain.accepted(f"{who}: {fact}", values)
        return found

    @property
    def ops(self) -> tuple[str, ...]:
        """The names under which rules can be registered."""
        return tuple(self._domains)

    @property
    def declared(self) -> Mapping[str, Declared]:
        """The composites whose parameters are declared, by name."""
        return self._declared

    def rules(self, op: str) -> tuple[Rule, ...]:
        """The rules of an op by name."""
        return tuple(sorted(self._rules.get(op, ()), key=lambda rule: rule.name))

    def check(self, ops: Iterable[str] | None = None) -> None:
        """Find ambiguities: enumerate, for each op, the facts as far as any rule tells them apart.

        Args:
          ops: whose rules are looked at; by default those of all.

        Raises:
          RegistryError: two unbeaten rules fit the same facts; the message names both places and the facts.
        """
        for op in self._domains if ops is None else ops:
            self._check_rules(op, self.rules(op), self._sets(op))

    def _sets(self, op: str) -> Mapping[str, Accepted]:
        """The values of each fact that a rule of an op constrains: of one whose values are not listed those that rules
        name, and one that stands for any other."""
        if op not in self._told_apart:
            named: dict[str, set[Any]] = {}
            for rule in self._rules[op]:
                for fact, values in rule.constraints.items():
                    named.setdefault(fact, set()).update(values)
            domains = ((fact, self._domains[op][fact], values) for fact, values in named.items())
            self._told_apart[op] = {
                fact: frozenset({*domain.values, *values, Other.OTHER}) if domain.is_open else domain.values
                for fact, domain, values in domains
            }
        return self._told_apart[op]

    def _check_rules(self, op: str, rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> None:
        representatives = _representatives(rules, domains)
        for one, other in combinations(rules, 2):
            if one.beats(other, domains) or other.beats(one, domains):
                continue
            if one.when is not None and other.when is not None:
                continue  # an op tells whether both hold
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
                    asked = _told({fact: facts[fact] for rule in unbeaten for fact in rule.constraints})
                    raise RegistryError(f"{op}: {listed} are both most specific for {asked or 'any facts'}")

    def lookup(self, op: str, **values: object) -> Rule:
        """The rule of a variant, without a module: `registry.lookup("my.expand_clone", mode=Mode.REPEAT).lowering`.

        Facts that are not named have their declared default, or may be anything. A condition is asked of those that are
        named, and may hold where it asks for others.

        Args:
          op: the op, or the composite.
          **values: a value for each fact that matters, and for parameters of any value.

        Raises:
          NoRuleError: no rule is for such a variant; the message lists the nearest and all that are registered.
          RegistryError: the op, a fact or a value is unknown, or which rule it is depends on facts that are not named,
            or on conditions; the message lists the rules, each with such facts.
        """
        declared = self._declared.get(op)
        types: Mapping[str, type] = declared.types if declared is not None else {}
        accepted = self._accepted("lookup", op, {fact: one for fact, one in values.items() if fact not in types})
        if several := [fact for fact, one in accepted.items() if len(one) > 1]:
            raise RegistryError(f"lookup: {several[0]} is one value, not {_names(accepted[several[0]])!r}")
        given: dict[str, Hashable] = {fact: next(iter(one)) for fact, one in accepted.items()}
        if declared is not None:
            any_of = {fact: declared.checked("lookup", fact, one) for fact, one in values.items() if fact in types}
            given |= any_of
            given |= {fact: value for fact, value in declared.defaults.items() if fact not in given}
        fitting = [rule for rule in self.rules(op) if all(_accepts(rule, fact, given[fact]) for fact in given)]
        found = self._chosen_for(op, fitting, given)
        if not found:
            lacking = [(rule, rule.lacks(given)) for rule in self.rules(op)]
            lacking = [(r, why or ((Code.NEEDS(r.when.text),) if r.when else ())) for r, why in lacking]
            lacking.sort(key=lambda pair: len(pair[1]))
            raise NoRuleError(op, lacking[:3], self.rules(op), given)
        if len(found) > 1:
            listed = "; ".join(f"{rule.name} ({rule.place}) with {more}" for rule, more in found.values())
            told = f"which rule of {op} it is with {_told(given) or 'no facts'} depends on more"
            raise RegistryError(f"lookup: {told}: {listed}")
        [(rule, _)] = found.values()
        return rule

    def _chosen_for(self, op: str, rules: Sequence[Rule], given: Mapping[str, Hashable]) -> dict[str, tuple[Rule, str]]:
        """Those of some rules that are chosen where given facts hold, by name, each with further facts in a line."""
        sets = self._sets(op)
        free = {fact: values for fact, values in _representatives(rules, sets).items() if fact not in given}
        if prod(map(len, free.values())) > MOST_TRIED:
            raise RegistryError(
                f"lookup: which rule of {op} it is depends on too many facts; name some of {', '.join(free)}"
            )
        found: dict[str, tuple[Rule, str]] = {}
        for values in product(*free.values()):
            facts = dict(zip(free, values, strict=True))
            fitting = [rule for rule in rules if all(_accepts(rule, fact, value) for fact, value in facts.items())]
            held = {rule.name: _holds_of(rule, {**given, **facts}) for rule in fitting}
            sure = self._unbeaten([rule for rule in fitting if held[rule.name]], sets)
            open_ones = (rule for rule in fitting if held[rule.name] is None)
            perhaps = [rule for rule in open_ones if not any(one.beats(rule, sets) for one in sure)]
            asked = _told({fact: value for fact, value in facts.items() if len(free[fact]) > 1})
            for rule in (*sure, *perhaps):
                more = ", ".join(filter(None, (asked, rule.when.text if rule.when else "")))
                found.setdefault(rule.name, (rule, more or "no other facts"))
        return found

    def select(self, op: str, facts: Facts, without: Without = ()) -> Choice:
        """The most specific rule that fits the facts.

        Args:
          op: the op.
          facts: its facts.
          without: names of rules that are no candidates, each with the reason.

        Raises:
          NoRuleError: none fits.
          RegistryError: two do, neither more specific (where `check` was not called, or without the one that is, or
            the conditions of both hold).
          ConditionError: the condition of a rule raises.
        """
        if op not in self._domains:
            raise NoRuleError(op, ())
        conditions = tuple(not rule.misses(facts) for rule in self._rules[op] if rule.when is not None)
        key = (op, without, conditions, *(facts[name] for name in self._sets(op)))
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
        sets = self._sets(op)
        if not fitting:
            # What fits the facts comes first: then it is the target, or a condition, that stands in the way.
            nearest = sorted(rejected, key=lambda pair: distance[pair[0].name])[:3]
            raise NoRuleError(op, nearest, self.rules(op), {fact: facts[fact] for fact in sets})
        unbeaten = self._unbeaten(fitting, sets)
        if len(unbeaten) > 1:
            listed = " and ".join(f"{rule.name} ({rule.place}: {rule.classes()})" for rule in unbeaten)
            asked = _told({fact: facts[fact] for rule in unbeaten for fact in rule.constraints})
            raise RegistryError(f"{op}: {listed} both fit {asked or 'it'}")
        chosen = unbeaten[0]
        rejected.extend((rule, (Code.LESS_SPECIFIC(chosen.short_name),)) for rule in fitting if rule is not chosen)
        return Choice(chosen, tuple(sorted(rejected, key=lambda pair: pair[0].name)))

    @staticmethod
    def _unbeaten(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> list[Rule]:
        return [rule for rule in rules if not any(other.beats(rule, domains) for other in rules)]


def _with_every(domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """The facts of an op, and behind them those of every op that it has not of its own."""
    return {**domains, **{fact: domain for fact, domain in EVERY.items() if fact not in domains}}


def _is_same_condition(one: When | None, other: When | None) -> bool:
    """Whether two rules have the same condition, or none."""
    return one is other or (one is not None and other is not None and one.text == other.text)


def _holds_of(rule: Rule, facts: Mapping[str, Hashable]) -> bool | None:
    """Whether the condition of a rule holds of a few facts; None where it asks for more than these."""
    try:
        return rule.when is None or bool(rule.when.holds(facts))
    except Exception:  # of facts by name alone it may ask for an attribute, or for one that nobody named
        return None


def _accepts(rule: Rule, fact: str, value: object) -> bool:
    """Whether a rule's constraints take a value of a fact."""
    accepted = rule.constraints.get(fact)
    return accepted is None or value in accepted


def _representatives(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> dict[str, list[Hashable]]:
    """For each fact one value of each set of values that no rule tells apart."""
    found: dict[str, list[Hashable]] = {}
    for fact, domain in domains.items():
        classes: dict[tuple[bool, ...], Hashable] = {}
        for value in sorted(domain, key=lambda value: (value is Other.OTHER, text_of(value))):
            classes.setdefault(tuple(value in r.constraints.get(fact, domain) for r in rules), value)
        found[fact] = list(classes.values())
    return found


def _place(lowering: Callable[..., Any]) -> str:
    """Folder, file and line of a function ("lowering/scatter/one_window.py:31"), without the machine's own path."""
    code = getattr(inspect.unwrap(lowering), "__code__", None)
    return "?" if code is None else _in_package(str(code.co_filename), int(code.co_firstlineno))


def _place_of(frame: FrameType | None) -> str:
    """The place from which a function was called, given its frame."""
    caller = None if frame is None else frame.f_back
    return "?" if caller is None else _in_package(caller.f_code.co_filename, caller.f_lineno)


def _in_package(file: str, line: int) -> str:
    parts = file.replace("\\", "/").split("/")
    own = next((k + 1 for k in reversed(range(len(parts) - 1)) if parts[k] == __name__.partition(".")[0]), -2)
    return f"{'/'.join(parts[own:])}:{line}"
