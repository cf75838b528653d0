"""The registry of lowering rules: it knows no op, only op names, facts with finite domains, and rules over them.

A constraint is a set of accepted values of one fact; a fact without a constraint accepts all. Rule A beats rule B when
each of A's sets lies within B's and one strictly so. There are no priorities and no registration order: two rules that
fit the same facts, neither beating the other and no third one beating both, are an error of whoever registered them,
and `CompositeLoweringRegistry.check` finds it without any module.

The model is multiple dispatch (plum, "Ambiguity"; Julia's method specificity), over facts instead of types.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import combinations, product
from typing import Any, Protocol, TypeAlias, TypeVar

from hlo_lower.causes import Cause, Code
from hlo_lower.errors import RegistryError

Lowering = TypeVar("Lowering", bound=Callable[..., Any])
Accepted = frozenset[Enum]
Spared: TypeAlias = Mapping[tuple[str, Enum], Sequence[str]]
"""For a value of a fact the ops that a rule does not build then, although it declares them."""
Without: TypeAlias = tuple[tuple[str, Cause], ...]
"""Names of rules that turned out not to do, each with the reason."""


class Facts(Protocol):
    """What a rule is chosen by: a value for each fact of the op's domains."""

    def __getitem__(self, name: str, /) -> Enum: ...


class Target(Protocol):
    """What restricts the candidates: reasons why a rule's ops may not be emitted. Equal ones restrict alike."""

    def __hash__(self) -> int: ...

    def refusals(self, ops: Sequence[str], /) -> Sequence[Cause]: ...


@dataclass(frozen=True)
class Rule:
    """A registered lowering.

    Attributes:
      op: the op that it lowers ("stablehlo.scatter").
      name: the function's name, `X_to_Y`.
      lowering: the function.
      constraints: fact name to accepted values.
      emits: names of the ops that it may build, those of the op's own region not counted.
      spared: for a value of a fact those of them that it does not build then.
      form: its canonical form in a line, for documentation.
      place: "lowerings/insert_slice.py:31"; of a plug-in with its origin behind it.
      origin: the plug-in that it comes from, or "".
    """

    op: str
    name: str
    lowering: Callable[..., Any]
    constraints: Mapping[str, Accepted]
    emits: tuple[str, ...]
    form: str
    place: str
    origin: str = ""
    spared: Mapping[tuple[str, Enum], tuple[str, ...]] = field(default_factory=dict[tuple[str, Enum], tuple[str, ...]])

    def emitted(self, facts: Facts) -> tuple[str, ...]:
        """What it may build under facts that it accepts."""
        spared = {op for (name, value), ops in self.spared.items() if facts[name] is value for op in ops}
        return tuple(op for op in self.emits if op not in spared)

    @property
    def short_name(self) -> str:
        """The name without what it lowers: "dynamic_update_slice"."""
        return self.name.removeprefix("scatter_to_")

    def misses(self, facts: Facts) -> tuple[Cause, ...]:
        """The facts that it does not accept, each with its value and those that it needs."""
        return tuple(
            Code.MISSES(name, facts[name].value, _values(accepted))
            for name, accepted in self.constraints.items()
            if facts[name] not in accepted
        )

    def beats(self, other: "Rule", domains: Mapping[str, Accepted]) -> bool:
        """Whether it is strictly more specific than another rule."""
        pairs = [
            (self.constraints.get(fact, domain), other.constraints.get(fact, domain))
            for fact, domain in domains.items()
        ]
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    def classes(self) -> str:
        """The constraints in a line: "subset=Tile|Point|Full, drops=windows"."""
        return ", ".join(f"{name}={_names(accepted)}" for name, accepted in self.constraints.items()) or "anything"


def _names(accepted: Iterable[object]) -> str:
    return "|".join(_values(accepted))


def _values(accepted: Iterable[object]) -> tuple[str, ...]:
    return tuple(sorted(str(value.value) if isinstance(value, Enum) else repr(value) for value in accepted))


@dataclass(frozen=True)
class Choice:
    """The rule that was chosen and, for each other rule, why it was not."""

    rule: Rule
    rejected: tuple[tuple[Rule, tuple[Cause, ...]], ...]


class NoRuleError(Exception):
    """No rule fits: the nearest ones, at most three, each with what it lacks."""

    def __init__(self, op: str, nearest: Sequence[tuple[Rule, tuple[Cause, ...]]]) -> None:
        super().__init__(f"no lowering for {op}")
        self.nearest = tuple(nearest)


class RuleList:
    """Rules of one family, written down where they are defined; `CompositeLoweringRegistry.extend` takes them in.

    A plug-in is such a list under a name of the entry point group `hlo_lower.rules`.
    """

    def __init__(self) -> None:
        self.entries: list[
            tuple[str, Callable[..., Any], Sequence[str], str, Mapping[str, Iterable[Enum]], Spared]
        ] = []

    def lowers(
        self,
        op: str,
        *,
        emits: Sequence[str] = (),
        form: str = "",
        spared: Spared | None = None,
        **constraints: Iterable[Enum],
    ) -> Callable[[Lowering], Lowering]:
        """Write a lowering down under an op and constraints on its facts.

        Args:
          op: the op that it lowers ("stablehlo.scatter").
          emits: every op that it may build. "stablehlo.map" stands for the op's own region: where that is lifted to
            whole windows, its ops are emitted instead.
          form: the canonical form in a line.
          spared: for a value of a fact those of the ops that it does not build then.
          **constraints: for each fact that matters the values that it takes; a fact that is not named may be anything.
        """

        def register(lowering: Lowering) -> Lowering:
            self.entries.append((op, lowering, emits, form, constraints, spared or {}))
            return lowering

        return register


class CompositeLoweringRegistry:
    """Rules by op, chosen by facts.

    Args:
      domains: for each op the facts that describe it, each with its finite set of values.
    """

    def __init__(self, domains: Mapping[str, Mapping[str, Iterable[Enum]]]) -> None:
        self._domains = {
            op: {fact: frozenset(values) for fact, values in facts.items()} for op, facts in domains.items()
        }
        self._rules: dict[str, list[Rule]] = {op: [] for op in domains}
        self._chosen: dict[tuple[object, ...], Choice] = {}

    def lowers(
        self, op: str, *, emits: Sequence[str] = (), form: str = "", **constraints: Iterable[Enum]
    ) -> Callable[[Lowering], Lowering]:
        """Register a lowering under an op and constraints on its facts.

        Raises:
          RegistryError: the op, a fact or a value is unknown, a constraint is empty, or the same rule is there already.
        """

        def register(lowering: Lowering) -> Lowering:
            self.add(op, lowering, emits=emits, form=form, constraints=constraints)
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
        for op, lowering, emits, form, constraints, spared in rules.entries:
            how: dict[str, Any] = {"constraints": constraints, "origin": origin, "spared": spared}
            self.add(op, lowering, emits=emits, form=form, **how)

    def add(
        self,
        op: str,
        lowering: Callable[..., Any],
        *,
        emits: Sequence[str],
        form: str,
        constraints: Mapping[str, Iterable[Enum]],
        origin: str = "",
        spared: Spared | None = None,
    ) -> Rule:
        """Register a lowering; `lowers` is the same as a decorator."""
        place = f"{_place(lowering)} ({origin})" if origin else _place(lowering)
        name = getattr(lowering, "__name__", "")
        if not callable(lowering) or not isinstance(name, str) or not name.isidentifier():
            raise RegistryError(f"{place}: {lowering!r} is not a function with a name")
        if isinstance(emits, str):
            raise RegistryError(f"{place}: {name}: emits is a sequence of op names, not {emits!r}")
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
            if other.name == name or other.constraints == accepted:
                same = "name" if other.name == name else "constraints"
                raise RegistryError(f"{place}: {name} has the {same} of {other.name} at {other.place}")
        for (fact, value), ops in (spared or {}).items():
            if value not in self._domains[op].get(fact, ()) or not set(ops) <= set(emits):
                raise RegistryError(
                    f"{place}: {name}: spared: {fact}={value.value} is no fact, or {ops} are not emitted"
                )
        kept = {key: tuple(ops) for key, ops in (spared or {}).items()}
        rule = Rule(op, name, lowering, accepted, tuple(emits), form, place, origin, kept)
        self._rules[op].append(rule)
        self._chosen.clear()
        return rule

    def rules(self, op: str) -> tuple[Rule, ...]:
        """The rules of an op by name."""
        return tuple(sorted(self._rules.get(op, ()), key=lambda rule: rule.name))

    def check(self, targets: Iterable[Target] = ()) -> None:
        """Find ambiguities: enumerate, for each op, the facts as far as any rule tells them apart.

        Args:
          targets: the rules that each of these takes are checked apart: a target may refuse just the rule that is more
            specific than two others.

        Raises:
          RegistryError: two unbeaten rules fit the same facts; the message names both places and the facts.
        """
        for op in self._domains:
            self._check_rules(op, self.rules(op))
            for target in targets:
                self._check_rules(op, [rule for rule in self.rules(op) if not target.refusals(rule.emits)])

    def _check_rules(self, op: str, rules: Sequence[Rule]) -> None:
        domains = self._domains[op]
        representatives = _representatives(rules, domains)
        for one, other in combinations(rules, 2):
            if one.beats(other, domains) or other.beats(one, domains):
                continue
            # Only where both fit can they be ambiguous, and only if nothing beats either.
            shared = [
                [
                    value
                    for value in values
                    if all(value in r.constraints.get(fact, domains[fact]) for r in (one, other))
                ]
                for fact, values in representatives.items()
            ]
            for values in product(*shared):
                facts = dict(zip(representatives, values, strict=True))
                unbeaten = self._unbeaten([rule for rule in rules if not rule.misses(facts)], domains)
                if len(unbeaten) > 1:
                    listed = " and ".join(f"{rule.name} ({rule.place})" for rule in unbeaten)
                    told = ", ".join(f"{fact}={value.value}" for fact, value in facts.items())
                    raise RegistryError(f"{op}: {listed} are both most specific for {told}")

    def select(self, op: str, facts: Facts, target: Target, without: Without = ()) -> Choice:
        """The most specific rule that fits the facts and emits only what the target takes.

        Args:
          op: the op.
          facts: its facts.
          target: what restricts the candidates.
          without: names of rules that are no candidates, each with the reason.

        Raises:
          NoRuleError: none fits.
          RegistryError: two do, neither more specific (where `check` was not called, or not with this target).
        """
        if op not in self._domains:
            raise NoRuleError(op, ())
        key = (op, target, without, *(facts[name] for name in self._domains[op]))
        if key not in self._chosen:
            self._chosen[key] = self._select(op, facts, target, dict(without))
        return self._chosen[key]

    def _select(self, op: str, facts: Facts, target: Target, without: Mapping[str, Cause]) -> Choice:
        fitting: list[Rule] = []
        rejected: list[tuple[Rule, tuple[Cause, ...]]] = []
        distance: dict[str, tuple[int, int, str]] = {}
        for rule in self.rules(op):
            misses, refusals = rule.misses(facts), tuple(target.refusals(rule.emitted(facts)))
            if rule.name in without:
                refusals = (*refusals, without[rule.name])
            if misses or refusals:
                rejected.append((rule, (*misses, *refusals)))
                distance[rule.name] = (len(misses), len(refusals), rule.name)
            else:
                fitting.append(rule)
        if not fitting:
            # What fits the facts comes first: then it is the target that stands in the way.
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
    """Folder, file and line of a function ("lowerings/insert_slice.py:31"), without the machine's own path."""
    code = getattr(inspect.unwrap(lowering), "__code__", None)
    if code is None:
        return "?"
    file, line = str(code.co_filename), int(code.co_firstlineno)
    parts = file.replace("\\", "/").split("/")
    return f"{'/'.join(parts[-2:])}:{line}"
