"""Choose between forms that are right: the cheapest that the target takes, unless the user prefers another."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.causes import Code
from hlo_lower.errors import InputError
from hlo_lower.registry import Choice, CompositeLoweringRegistry, NoRuleError, Rule, Target, Without
from hlo_lower.scatter.dynamic import DynamicFacts
from hlo_lower.scatter.facts import ScatterFacts
from hlo_lower.scatter.regime import Regime
from hlo_lower.scatter.sizes import SizeTable


@dataclass(frozen=True)
class Preference:
    """What the user prefers (`Options.prefer`, `--prefer`).

    Attributes:
      rules: names of rules, each taken wherever it is right; the first one that is counts.
      sizes: the target's table, with the entries that the user gave.
    """

    rules: tuple[str, ...]
    sizes: SizeTable

    @classmethod
    def of(cls, told: Sequence[str], sizes: SizeTable, rules: Sequence[Rule]) -> "Preference":
        """Read names of rules and entries of the table.

        Raises:
          InputError: there is no such rule or entry, or its value is no number above 0.
        """
        known = {rule.short_name: rule.name for rule in rules}
        names: list[str] = []
        for text in told:
            name, equals, value = text.partition("=")
            if equals:
                sizes = _with_entry(sizes, name, value)
            elif name in known:
                names.append(known[name])
            else:
                raise InputError(
                    "--prefer",
                    f"no rule named {name!r}",
                    facts=f"rules are {', '.join(sorted(known))}; sizes are NAME=NUMBER",
                    next_step="hlo-lower rules",
                )
        return cls(tuple(names), sizes)

    def choose(
        self,
        registry: CompositeLoweringRegistry,
        op: str,
        facts: ScatterFacts | DynamicFacts,
        target: Target,
        without: Without = (),
    ) -> tuple[ScatterFacts | DynamicFacts, Choice]:
        """The rule for a scatter, and its facts in the form that the rule is for.

        Args:
          registry: the rules.
          op: the op that they are registered for.
          facts: the scatter's facts.
          target: the target as the candidates meet it.
          without: rules that are no candidates, each with the reason.

        Raises:
          NoRuleError: no rule is right that the target takes; what it says is of the cheapest form.
          RegistryError: two rules are.
        """
        if isinstance(facts, DynamicFacts) or not (facts.forms or self.rules):
            return facts, registry.select(op, facts, target, without)
        forms = tuple(facts.forms) or (facts.regime,)
        for name in self.rules:
            rule = next(rule for rule in registry.rules(op) if rule.name == name)
            # A rule for any form is taken in the one that is its own: one window after the other.
            own = forms if "regime" in rule.constraints else forms[-1:] if Regime.MANY not in forms else (Regime.MANY,)
            for told in map(facts.in_form, own):
                if name not in dict(without) and not rule.misses(told) and not target.refusals(rule.emitted(told)):
                    return told, _preferred(rule, registry.select(op, told, target, without))
        for told in map(facts.in_form, forms):
            try:
                choice = registry.select(op, told, target, without)
            except NoRuleError:
                continue
            # If the target refuses a form's own rule, the one for all forms fits; it waits until the others are tried.
            if told.regime in choice.rule.constraints.get("regime", ()) or told.regime in (Regime.MANY, forms[-1]):
                return told, choice
        return facts, registry.select(op, facts, target, without)


def names_of(prefer: Sequence[str]) -> tuple[str, ...]:
    """What is preferred as `Options.prefer` holds it; a str is one name, not its letters."""
    return (prefer,) if isinstance(prefer, str) else tuple(prefer)


def _preferred(rule: Rule, choice: Choice) -> Choice:
    """A rule that was asked for, with what it was chosen instead of."""
    if choice.rule is rule:
        return choice
    rejected = [(other, why) for other, why in choice.rejected if other is not rule]
    return Choice(
        rule, tuple(sorted([*rejected, (choice.rule, (Code.PREFERRED(rule.short_name),))], key=lambda p: p[0].name))
    )


def _with_entry(sizes: SizeTable, name: str, value: str) -> SizeTable:
    try:
        number: object = float(value)
    except ValueError:
        number = value
    try:
        return sizes.with_entry(name, number)
    except ValueError as error:
        raise InputError("--prefer", str(error), next_step=f"{name}=64; hlo-lower rules lists the entries") from None
