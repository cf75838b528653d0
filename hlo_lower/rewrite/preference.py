"""The order in which forms that are right are tried: what the user prefers, then the cheapest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from hlo_lower.errors import InputError
from hlo_lower.registry import Rule
from hlo_lower.rewrite.kind import Form
from hlo_lower.scatter.facts import ScatterFacts
from hlo_lower.scatter.regime import Regime
from hlo_lower.scatter.sizes import SizeTable


@dataclass(frozen=True)
class Preference:
    """What the user prefers (`Options.prefer`, `--prefer`).

    Attributes:
      rules: rules that are taken wherever they are right; the first one that is counts.
      sizes: the target's table, with the entries that the user gave.
    """

    rules: tuple[Rule, ...]
    sizes: SizeTable

    @classmethod
    def of(cls, told: Sequence[str], sizes: SizeTable, rules: Sequence[Rule]) -> "Preference":
        """Read names of rules and entries of the table.

        Raises:
          InputError: there is no such rule or entry, or its value is no number above 0.
        """
        known = {rule.short_name: rule for rule in rules}
        wanted: list[Rule] = []
        for text in told:
            name, equals, value = text.partition("=")
            if equals:
                sizes = _with_entry(sizes, name, value)
            elif name in known:
                wanted.append(known[name])
            else:
                raise InputError(
                    "--prefer",
                    f"no rule named {name!r}",
                    facts=f"rules are {', '.join(sorted(known))}; sizes are NAME=NUMBER",
                    next_step="hlo-lower rules",
                )
        return cls(tuple(wanted), sizes)

    def forms(self, facts: ScatterFacts) -> list[Form]:
        """The forms of a scatter in the order in which they are tried.

        A rule for any form is that of one window after the other: in other forms it waits until all were tried. Where
        it is preferred, it is taken in that one.
        """
        forms = tuple(facts.forms) or (facts.regime,)
        found: list[Form] = []
        for rule in self.rules:
            own = forms if "regime" in rule.constraints else forms[-1:] if Regime.MANY not in forms else (Regime.MANY,)
            found += [Form(facts.in_form(form), rule=rule.name) for form in own]
        waits = [form not in (Regime.MANY, forms[-1]) for form in forms]
        pairs = zip(forms, waits, strict=True)
        return found + [Form(facts.in_form(form), own="regime" if is_own else "") for form, is_own in pairs]


def _with_entry(sizes: SizeTable, name: str, value: str) -> SizeTable:
    try:
        number: object = float(value)
    except ValueError:
        number = value
    try:
        return sizes.with_entry(name, number)
    except ValueError as error:
        raise InputError("--prefer", str(error), next_step=f"{name}=64; hlo-lower rules lists the entries") from None
