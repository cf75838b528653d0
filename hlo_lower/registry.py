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
from itertools import product
from typing import Any, Protocol, TypeVar

from hlo_lower.errors import RegistryError

Lowering = TypeVar("Lowering", bound=Callable[..., Any])
Accepted = frozenset[Enum]


class Facts(Protocol):
    """What a rule is chosen by: a value for each fact of the op's domains."""

    def __getitem__(self, name: str, /) -> Enum: ...


class Target(Protocol):
    """What restricts the candidates: a reason why an op may not be emitted, or None."""

    @property
    def name(self) -> str: ...

    def refusal(self, op: str, /) -> str | None: ...


@dataclass(frozen=True)
class Rule:
    """A registered lowering.

    Attributes:
      op: the op that it lowers ("stablehlo.scatter").
      name: the function's name, `X_to_Y`.
      lowering: the function.
      constraints: fact name to accepted values.
      emits: names of the ops that it may build, those of the op's own region not counted.
      form: its canonical form in a line, for documentation.
      place: "lowerings/insert_slice.py:31".
    """

    op: str
    name: str
    lowering: Callable[..., Any]
    constraints: Mapping[str, Accepted]
    emits: tuple[str, ...]
    form: str
    place: str

    def misses(self, facts: Facts) -> tuple[str, ...]:
        """The facts that it does not accept, each as "fact=value, needs a|b"."""
        return tuple(
            f"{name}={facts[name].value}, needs {_names(accepted)}"
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


def _names(accepted: Iterable[Enum]) -> str:
    return "|".join(sorted(str(value.value) for value in accepted))


@dataclass(frozen=True)
class Choice:
    """The rule that was chosen and, for each other rule, why it was not."""

    rule: Rule
    rejected: tuple[tuple[Rule, str], ...]


class NoRuleError(Exception):
    """No rule fits: the nearest ones, at most three, each with what it lacks."""

    def __init__(self, op: str, nearest: Sequence[tuple[Rule, str]]) -> None:
        super().__init__(f"no lowering for {op}")
        self.nearest = tuple(nearest)


class RuleList:
    """Rules of one family, written down where they are defined; `CompositeLoweringRegistry.extend` takes them in."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Callable[..., Any], Sequence[str], str, Mapping[str, Iterable[Enum]]]] = []

    def lowers(
        self, op: str, *, emits: Sequence[str] = (), form: str = "", **constraints: Iterable[Enum]
    ) -> Callable[[Lowering], Lowering]:
        """Write a lowering down under an op and constraints on its facts."""

        def register(lowering: Lowering) -> Lowering:
            self.entries.append((op, lowering, emits, form, constraints))
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

    def extend(self, rules: RuleList) -> None:
        """Register every rule of a list.

        Raises:
          RegistryError: as `lowers`.
        """
        for op, lowering, emits, form, constraints in rules.entries:
            self.add(op, lowering, emits=emits, form=form, constraints=constraints)

    def add(
        self,
        op: str,
        lowering: Callable[..., Any],
        *,
        emits: Sequence[str],
        form: str,
        constraints: Mapping[str, Iterable[Enum]],
    ) -> Rule:
        """Register a lowering; `lowers` is the same as a decorator."""
        place = _place(lowering)
        name = str(getattr(lowering, "__name__", lowering))
        if op not in self._domains:
            raise RegistryError(f"{place}: {name} lowers {op}, which has no domains; known: {', '.join(self._domains)}")
        accepted = {fact: frozenset(values) for fact, values in constraints.items()}
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
        rule = Rule(op, name, lowering, accepted, tuple(emits), form, place)
        self._rules[op].append(rule)
        self._chosen.clear()
        return rule

    def rules(self, op: str) -> tuple[Rule, ...]:
        """The rules of an op by name."""
        return tuple(sorted(self._rules.get(op, ()), key=lambda rule: rule.name))

    def check(self) -> None:
        """Find ambiguities: enumerate, for each op, the facts as far as any rule tells them apart.

        Raises:
          RegistryError: two unbeaten rules fit the same facts; the message names both places and the facts.
        """
        for op, domains in self._domains.items():
            for facts in _distinguished(self.rules(op), domains):
                unbeaten = self._unbeaten([r for r in self.rules(op) if not r.misses(facts)], domains)
                if len(unbeaten) > 1:
                    listed = " and ".join(f"{rule.name} ({rule.place})" for rule in unbeaten)
                    told = ", ".join(f"{fact}={value.value}" for fact, value in facts.items())
                    raise RegistryError(f"{op}: {listed} are both most specific for {told}")

    def select(self, op: str, facts: Facts, target: Target) -> Choice:
        """The most specific rule that fits the facts and emits only what the target takes.

        Raises:
          NoRuleError: none fits.
          RegistryError: two do, neither more specific (only where `check` was not called).
        """
        key = (op, target.name, *(facts[name] for name in self._domains[op]))
        if key not in self._chosen:
            self._chosen[key] = self._select(op, facts, target)
        return self._chosen[key]

    def _select(self, op: str, facts: Facts, target: Target) -> Choice:
        fitting: list[Rule] = []
        rejected: list[tuple[Rule, str]] = []
        for rule in self.rules(op):
            reasons = [*rule.misses(facts), *(r for r in map(target.refusal, rule.emits) if r)]
            if reasons:
                rejected.append((rule, "; ".join(reasons)))
            else:
                fitting.append(rule)
        if not fitting:
            nearest = sorted(rejected, key=lambda pair: (pair[1].count(";"), pair[0].name))
            raise NoRuleError(op, nearest[:3])
        unbeaten = self._unbeaten(fitting, self._domains[op])
        if len(unbeaten) > 1:
            raise RegistryError(f"{op}: {' and '.join(f'{r.name} ({r.place})' for r in unbeaten)} both fit")
        chosen = unbeaten[0]
        rejected.extend((rule, f"less specific than {chosen.name}") for rule in fitting if rule is not chosen)
        return Choice(chosen, tuple(sorted(rejected, key=lambda pair: pair[0].name)))

    @staticmethod
    def _unbeaten(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> list[Rule]:
        return [rule for rule in rules if not any(other.beats(rule, domains) for other in rules)]


def _distinguished(rules: Sequence[Rule], domains: Mapping[str, Accepted]) -> Iterable[dict[str, Enum]]:
    """One assignment of facts for each way in which the rules can tell them apart."""
    representatives: dict[str, list[Enum]] = {}
    for fact, domain in domains.items():
        classes: dict[tuple[bool, ...], Enum] = {}
        for value in sorted(domain, key=lambda v: str(v.value)):
            classes.setdefault(tuple(value in r.constraints.get(fact, domain) for r in rules), value)
        representatives[fact] = list(classes.values())
    for values in product(*representatives.values()):
        yield dict(zip(representatives, values, strict=True))


def _place(lowering: Callable[..., Any]) -> str:
    """Folder, file and line of a function ("lowerings/insert_slice.py:31"), without the machine's own path."""
    code = getattr(inspect.unwrap(lowering), "__code__", None)
    if code is None:
        return "?"
    file, line = str(code.co_filename), int(code.co_firstlineno)
    parts = file.replace("\\", "/").split("/")
    return f"{'/'.join(parts[-2:])}:{line}"
