"""Fit the costs of a target's table to what forms of scatters take on its consumer, and print the section `[costs]`.

    python scripts/fit_costs.py --on xla --cases 40 --json xla.json
    python scripts/fit_costs.py --on iree --cases 24 --json iree.json
    python scripts/fit_costs.py --on iree --use iree.json                   # fit again
    python scripts/fit_costs.py --on xla --use xla.json --use iree.json  # between two consumers

The scatters are random ones (`benchmark.family`), not the classes of `bench.py`, on which the table is tested. Every
third is left out of the fit. The regrets (chosen / best) are printed for those that were fitted and those that were
not, with the table as it was and as fitted. `bench.py --prefer every` measures the same of the classes.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import jax
from absl import app, flags
from benchmark import in_children, on_xla
from benchmark.cost_fit import FITTED, Measurement, between, fitted, forms_by_rule, regrets, work_of
from benchmark.family import family
from benchmark.on_iree import ON_IREE
from benchmark.on_litert import ON_LITERT
from benchmark.outcome import Outcome
from benchmark.timing import CLOCK, CLOCKS
from benchmark.versions import Prepared

from hlo_lower.ops.targets import target_of
from hlo_lower.ops.targets.costs import CostTable

IN_CHILDREN = {"iree": ON_IREE, "litert": ON_LITERT}
LEFT_OUT = 3
"""Of so many cases one is not fitted."""

_ON = flags.DEFINE_enum("on", None, ("xla", *IN_CHILDREN), "The consumer.", required=True)
_TARGET = flags.DEFINE_string("target", None, "Whose table is fitted: by default the one named as the consumer.")
_CASES = flags.DEFINE_integer("cases", 24, "Random scatters.", 4)
_SEED = flags.DEFINE_integer("seed", 0, "Of the scatters.")
_ROUNDS = flags.DEFINE_integer("rounds", 7, "Rounds of each measurement.", 1)
_BUDGET = flags.DEFINE_float("budget", 0.2, "Seconds that all rounds of one form may take.", 0.001)
_CLOCK = flags.DEFINE_enum("clock", "wall", list(CLOCKS), "What is timed; processor: on a machine that others use.")
_LIMIT = flags.DEFINE_float("limit", 20, "Seconds to compile a form or to call it once.", 1)
_JSON = flags.DEFINE_string("json", None, "Write what was measured to this file, case by case.")
_USE = flags.DEFINE_multi_string("use", [], "Measurements of an earlier run, in the place of new ones; more: a mean.")


def measure() -> list[Measurement]:
    """Every right form of each scatter, on the consumer."""
    target = target_of(_TARGET.value or _ON.value)
    forms = forms_by_rule()
    found: list[Measurement] = []
    for case in family(_SEED.value, _CASES.value):
        prepared = Prepared(case, list(forms), target.name)
        works = work_of(prepared.versions[0].text, target, is_sum=case.float_sum)
        for rule, seconds in _timed(_outcome(prepared)).items():
            if (form := forms.get(rule, "")) in works:
                found.append(Measurement(f"{case.name}: {case.size}", form, works[form], seconds))
        print(f"{case.name}: {case.size}: {len(works)} forms", flush=True)
        if _JSON.value:
            Path(_JSON.value).write_text(json.dumps([asdict(m) for m in found], indent=1) + "\n")
    return found


def _outcome(prepared: Prepared) -> Outcome:
    how: dict[str, Any] = {"rounds": _ROUNDS.value, "budget": _BUDGET.value, "sample": 0.005}
    if _ON.value == "xla":
        return on_xla.measure(prepared, jax.devices("cpu")[0], **how)
    return in_children.measure(prepared, IN_CHILDREN[_ON.value], **how, limit=_LIMIT.value)


def _timed(outcome: Outcome) -> dict[str, float]:
    """The rules that were measured, each with its seconds."""
    found: dict[str, float] = {}
    for entry in outcome.entries:
        if entry.timing is not None and not entry.wrong and len(entry.rules) == 1:
            found.setdefault(entry.rules[0], entry.timing.low)
    return found


def show(measurements: Sequence[Measurement], before: CostTable) -> CostTable:
    """Fit, and print the regrets of the cases that were fitted and of those that were not."""
    names = list(dict.fromkeys(m.case for m in measurements))
    parts = {
        "fitted": [m for m in measurements if names.index(m.case) % LEFT_OUT],
        "left out": [m for m in measurements if not names.index(m.case) % LEFT_OUT],
    }
    after = fitted(parts["fitted"], before)
    for name, part in parts.items():
        for what, costs in (("as it was", before), ("as fitted", after)):
            of = list(regrets(part, costs).values())
            print(
                f"  {name:9}{what:10} {len(of):3} scatters: regret {geometric_mean(of):6.2f} in the mean,"
                f" {max(of):8.2f} at most, above 1.2: {sum(r > 1.2 for r in of)}, above 2: {sum(r > 2 for r in of)}"
            )
    return after


def main(argv: Sequence[str]) -> None:
    """Measure or read, fit, and print."""
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument {argv[1]}")
    os.environ[CLOCK] = _CLOCK.value
    on_xla.dispatch_in_line()
    before = target_of(_TARGET.value or _ON.value).costs
    runs = [[Measurement(**m) for m in json.loads(Path(path).read_text())] for path in _USE.value] or [measure()]
    tables = [show(run, before) for run in runs]
    costs = tables[0] if len(tables) == 1 else between(tables, before)
    for run in runs if len(runs) > 1 else ():
        of = list(regrets(run, costs).values())
        print(f"  the mean of the tables: regret {geometric_mean(of):.2f} in the mean, {max(of):.2f} at most")
    print("[costs]", *(f"{entry} = {getattr(costs, entry):g}" for entry in FITTED), sep="\n")


if __name__ == "__main__":
    app.run(main)
