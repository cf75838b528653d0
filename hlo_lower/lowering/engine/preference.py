"""The order in which forms that are right are tried: what the user prefers, then the cheapest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.base.arguments import no_rule
from hlo_lower.base.errors import InputError
from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.facts import ScatterFacts, Strategy
from hlo_lower.lowering.engine.kind import Candidate
from hlo_lower.ops.targets.costs import CostTable


@dataclass(frozen=True)
class Preference:
    """What the user prefers (`Options.prefer`, `--prefer`).

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
          InputError: there is no such rule or entry, or its value is no number above 0.
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
