"""Fit the costs of a table to measured forms: what each form takes of each entry, in nanoseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import exp, log

import numpy as np
from numpy.typing import NDArray

import hlo_lower as hl
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.scatter.canonical import canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.facts import FloatMode, OutOfBounds, Strategy
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.ops.targets.costs import CostTable
from hlo_lower.ops.targets.target import Target

FITTED = (
    *("window", "loop", "copy_element", "element", "step", "fill_element", "pass_element", "compare", "reduce"),
    *("multiply", "sort", "sort_pair", "find", "own_row"),
)
"""The entries that are fitted; the others are limits, and costs of sorts."""

HELD = 0.05
"""How much a table is held to what it was: what no measurement tells stays as it is."""

LEAST = 1e-4
"""An entry that is no more is taken for 0."""


@dataclass(frozen=True)
class Measurement:
    """A form of one scatter, measured.

    Attributes:
      case: which scatter.
      form: its strategy.
      work: how much of each entry the form takes.
      seconds: of a call, the lowest round: what else the machine does makes a round longer, never shorter.
    """

    case: str
    form: str
    work: Mapping[str, float]
    seconds: float

    def cost(self, costs: CostTable) -> float:
        """Nanoseconds by a table."""
        return sum(amount * getattr(costs, entry) for entry, amount in self.work.items())


def work_of(text: str, target: Target, *, is_sum: bool) -> dict[str, dict[str, float]]:
    """What each form that is right for the one scatter of a module takes of each entry, by form.

    Costs are linear in the entries that are fitted, so a table in which one of them is 1 and the others are 0 gives its
    factor.
    """
    graph = hl.read(text)
    [node] = [n for f in graph.functions.values() if f.has_body for n in f.body.nodes if n.name == "stablehlo.scatter"]
    scatter, analysis = canonicalize(node), IndexAnalysis(graph)
    found: dict[str, dict[str, float]] = {}
    for entry in FITTED:
        unit = replace(target.costs, **{name: float(name == entry) for name in FITTED})
        facts = classify(
            scatter,
            analysis,
            OutOfBounds.XLA,
            FloatMode.REASSOCIATE if is_sum else FloatMode.EXACT,
            costs=unit,
            has_own=lambda combiner, _unique: any(k.when == "safe" for k in target.keep),
        )
        for form, amount in facts.strategies.items():
            if amount:
                found.setdefault(form.value, {})[entry] = amount
    return found


def forms_by_rule() -> dict[str, str]:
    """The rules of scatters that are for one strategy, each with it; the loop is for many windows."""
    found = {"while": Strategy.MANY.value}
    for rule in default_registry().rules("stablehlo.scatter"):
        forms = rule.constraints.get("strategy", ())
        if len(forms) == 1:
            (form,) = forms
            found[rule.short_name] = form.value
    return found


def fitted(measurements: Sequence[Measurement], before: CostTable) -> CostTable:
    """The table that fits best: logarithms of estimates to logarithms of times, so that a factor counts alike either
    way, outliers less than by their square, and held weakly to what it was."""
    from scipy.optimize import least_squares

    start = np.log([max(getattr(before, entry), LEAST) for entry in FITTED])
    works = np.array([[m.work.get(entry, 0.0) for entry in FITTED] for m in measurements])
    times = np.log([m.seconds * 1e9 for m in measurements])

    def residuals(entries: NDArray[np.float64]) -> NDArray[np.float64]:
        estimates = np.log(works @ np.exp(entries))
        return np.concatenate([estimates - times, HELD * (entries - start)])

    found = np.exp(least_squares(residuals, start, loss="soft_l1", f_scale=0.5).x)
    may_be_zero = {f.name for f in fields(CostTable) if f.metadata["may_be_zero"]}
    values = {
        entry: 0.0 if entry in may_be_zero and value <= 2 * LEAST else float(f"{value:.2g}")
        for entry, value in zip(FITTED, found, strict=True)
    }
    return replace(before, **values)


def regrets(measurements: Sequence[Measurement], costs: CostTable) -> dict[str, float]:
    """For each case the time of the form that a table chooses over that of the fastest one."""
    cases: dict[str, list[Measurement]] = {}
    for one in measurements:
        cases.setdefault(one.case, []).append(one)
    return {
        case: min(forms, key=lambda m: m.cost(costs)).seconds / min(m.seconds for m in forms)
        for case, forms in cases.items()
    }


def between(tables: Sequence[CostTable], before: CostTable) -> CostTable:
    """The geometric mean of tables, entry by entry.

    Of two forms it chooses the one whose cost, relative to the other one, is less where the consumers are weighed
    alike: so that the greater one of the two regrets is as small as it can be.
    """
    means = {
        entry: float(f"{exp(sum(log(max(getattr(t, entry), LEAST)) for t in tables) / len(tables)):.2g}")
        for entry in FITTED
    }
    return replace(before, **means)
