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

import difflib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import combinations, product
from math import prod
from typing import Any

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.domains import EVERY, Declared, Domain, Other, text_of, texts_of
from hlo_lower.base.errors import RegistryError
from hlo_lower.base.rule import (
    Accepted,
    Choice,
    ConditionError,
    DoesNotApply,
    Facts,
    FactsByName,
    Lowering,
    NoRuleError,
    Rule,
    When,
    Without,
    describe_rules,
    is_same_condition,
    place_of,
    place_of_caller,
    short_name,
    told_facts,
)

__all__ = [
    "Choice",
    "CompositeLoweringRegistry",
    "ConditionError",
    "DoesNotApply",
    "Facts",
    "FactsByName",
    "NoRuleError",
    "Rule",
    "RuleList",
    "When",
    "Without",
    "describe_rules",
    "short_name",
]

MOST_TRIED = 100_000
"""Combinations of facts that a look-up tries."""


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
        self,
        op: str,
        /,
        *,
        otherwise: str = "error",
        defaults: Mapping[str, object] | None = None,
        decomposition: Callable[..., Any] | str | None = None,
        examples: Callable[[], Iterable[str]] | Sequence[str] | None = None,
        **parameters: object,
    ) -> None:
        """Declare the parameters of a composite, once, so that rules can be registered for its variants.

        A composite of this name is one of the declared variants or an error: with an attribute that is not declared,
        or a value outside of its domain, it is none. So is a custom call that calls this name, by its `backend_config`.

        Args:
          op: the composite's name ("my.expand_clone").
          otherwise: what becomes of a variant without a rule: "error", or a "call" of the decomposition: a composite's
            own, or that which is stated of a custom call.
          defaults: the values of parameters that an op may leave out.
          decomposition: what a custom call of this name computes, which its rules are judged against: a JAX function of
            the operands, with the parameters as keywords, or the text of a module with one public function. A composite
            has its own.
          examples: modules as texts, or a function that gives them, on which `hlo-lower prove` tries the rules.
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
        place = place_of_caller(inspect.currentframe())
        self._declare(Declared.of(op, parameters, defaults or {}, otherwise, place, decomposition, examples))

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
        self, op: str, /, *, form: str = "", when: When | None = None, **parameters: object
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
        self._checked: set[str] = set()

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
        place = f"{place_of(lowering)} ({origin})" if origin else place_of(lowering)
        name = getattr(lowering, "__name__", "")
        if not callable(lowering) or not isinstance(name, str) or not name.isidentifier():
            raise RegistryError(f"{place}: {lowering!r} is not a function with a name")
        if gone := [word for word in ("emits", "spared") if word in constraints]:
            told = "the engine looks at what a rule builds"
            raise RegistryError(f"{place}: {name}: {gone[0]} is no longer declared: {told}; leave it out")
        if when is not None and type(when) is not When:
            raise RegistryError(f"{place}: {name}: when is a When(text, holds), not {when!r}")
        accepted = self._accepted_values(f"{place}: {name}", op, constraints)
        for other in self._rules[op]:
            alike = other.constraints == accepted and is_same_condition(other.when, when)
            is_named_so = other.short_name == short_name(name)
            if is_named_so or alike:
                same = "name" if is_named_so else "constraints"
                raise RegistryError(f"{place}: {name} has the {same} of {other.name} at {other.place}")
        rule = Rule(op, name, lowering, accepted, when, form, place, origin)
        self._rules[op].append(rule)
        self._chosen.clear()
        self._told_apart.pop(op, None)
        self._checked.discard(op)
        return rule

    def _accepted_values(self, who: str, op: str, constraints: Mapping[str, object]) -> dict[str, Accepted]:
        """The values that the constraints accept, for each fact."""
        if op not in self._domains:
            known, close = ", ".join(self._domains), difflib.get_close_matches(op, self._domains, n=1)
            how = f"the parameters of a composite are declared first: rules.declare({op!r}, ...)"
            told = f"known: {known}; {f'nearest: {close[0]}; ' if close else ''}{how}"
            raise RegistryError(f"{who} lowers {op}, which has no domains; {told}")
        found: dict[str, Accepted] = {}
        for fact, values in constraints.items():
            domain = self._domains[op].get(fact)
            if domain is None:
                known = ", ".join(self._domains[op])
                kind = self._declared[op].types.get(fact) if op in self._declared else None
                how = f"; {fact} is any {kind.__name__}, which a When(...) asks for" if kind else ""
                raise RegistryError(f"{who} constrains {fact}, which is not a fact of {op}; known: {known}{how}")
            found[fact] = domain.accepted_values(f"{who}: {fact}", values)
        return found

    @property
    def ops(self) -> tuple[str, ...]:
        """The names under which rules can be registered."""
        return tuple(self._domains)

    @property
    def declarations(self) -> Mapping[str, Declared]:
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
            if op not in self._checked:
                self._check_rules(op, self.rules(op), self._sets(op))
                self._checked.add(op)

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
            common = one.constraints.keys() & other.constraints.keys()
            if any(one.constraints[fact].isdisjoint(other.constraints[fact]) for fact in common):
                continue  # no facts fit both
            if one.beats(other, domains) or other.beats(one, domains):
                continue
            if one.when is not None and other.when is not None:
                continue  # an op tells whether both hold
            # Only where both fit can they be ambiguous, and only if nothing beats either that is sure to fit.
            shared = [
                [value for value in values if all(rule.accepts(fact, value) for rule in (one, other))]
                for fact, values in representatives.items()
            ]
            sure = [rule for rule in rules if rule.when is None or rule in (one, other)]
            for values in product(*shared):
                facts = dict(zip(representatives, values, strict=True))
                fitting = [rule for rule in sure if all(rule.accepts(fact, value) for fact, value in facts.items())]
                unbeaten = self._unbeaten(fitting, domains)
                if one in unbeaten and other in unbeaten:
                    listed = " and ".join(f"{rule.name} ({rule.place})" for rule in unbeaten)
                    asked = told_facts({fact: facts[fact] for rule in unbeaten for fact in rule.constraints})
                    raise RegistryError(f"{op}: {listed} are both most specific for {asked or 'any facts'}")

    def lookup(self, op: str, /, **values: object) -> Rule:
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
        accepted = self._accepted_values("lookup", op, {fact: one for fact, one in values.items() if fact not in types})
        if several := [fact for fact, one in accepted.items() if len(one) > 1]:
            raise RegistryError(f"lookup: {several[0]} is one value, not {'|'.join(texts_of(accepted[several[0]]))!r}")
        given: dict[str, Hashable] = {fact: next(iter(one)) for fact, one in accepted.items()}
        if declared is not None:
            any_of = {
                fact: declared.checked_value("lookup", fact, one) for fact, one in values.items() if fact in types
            }
            given |= any_of
            given |= {fact: value for fact, value in declared.defaults.items() if fact not in given}
        fitting = [rule for rule in self.rules(op) if all(rule.accepts(fact, given[fact]) for fact in given)]
        found = self._chosen_for(op, fitting, given)
        if not found:
            lacking = [(rule, rule.lacks(given)) for rule in self.rules(op)]
            lacking = [(r, why or ((Code.NEEDS(r.when.text),) if r.when else ())) for r, why in lacking]
            lacking.sort(key=lambda pair: len(pair[1]))
            raise NoRuleError(op, lacking[:3], self.rules(op), given)
        if len(found) > 1:
            listed = "; ".join(f"{rule.name} ({rule.place}) with {more}" for rule, more in found.values())
            told = f"which rule of {op} it is with {told_facts(given) or 'no facts'} depends on more"
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
            fitting = [rule for rule in rules if all(rule.accepts(fact, value) for fact, value in facts.items())]
            held = {rule.name: rule.may_hold({**given, **facts}) for rule in fitting}
            sure = self._unbeaten([rule for rule in fitting if held[rule.name]], sets)
            open_ones = (rule for rule in fitting if held[rule.name] is None)
            perhaps = [rule for rule in open_ones if not any(one.beats(rule, sets) for one in sure)]
            asked = told_facts({fact: value for fact, value in facts.items() if len(free[fact]) > 1})
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
            asked = told_facts({fact: facts[fact] for rule in unbeaten for fact in rule.constraints})
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


def _representatives(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> dict[str, list[Hashable]]:
    """For each fact one value of each set of values that no rule tells apart."""
    found: dict[str, list[Hashable]] = {}
    for fact, domain in domains.items():
        classes: dict[tuple[bool, ...], Hashable] = {}
        for value in sorted(domain, key=lambda value: (value is Other.OTHER, text_of(value))):
            classes.setdefault(tuple(value in r.constraints.get(fact, domain) for r in rules), value)
        found[fact] = list(classes.values())
    return found
