"""Deliberately wrong lowerings, each caught by name: `pytest -k clamp_for_drop` runs one of them.

Each is handed to the tool as a plug-in's rule, under exactly the facts of its scatter, so that it beats the right one.
"""

import pytest
from scatter_programs import POINTS
from wrong_lowerings_by_name import WRONG, Wrong, one_by_one

import hlo_lower as hl
from hlo_lower.base.registry import RuleList
from hlo_lower.facts.scatter.facts import ScatterFacts
from hlo_lower.lowering.engine.kind import Context
from hlo_lower.lowering.kinds import default_registry
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.scatter.scatters import read_scatters
from hlo_lower.ops.names import SCATTER
from hlo_lower.verify import Assumed, Effort
from hlo_lower.verify.module_runs import verify_module


def lowered_wrongly(name):
    """Its module under the built-in rules and the wrong one, which is more specific than any of them for it."""
    case, registry, rules = WRONG[name], default_registry(), RuleList()
    [subject] = read_scatters(Context(hl.read(case.module.text), Options(oob=case.oob), registry))
    facts = subject.candidates[0].facts
    constraints = {fact: {facts[fact]} for fact in ScatterFacts.domains}
    rules.lowers(SCATTER, form=case.lowering.__doc__ or "", **constraints)(case.lowering)
    registry.extend(rules, origin="wrong-on-purpose 1.0, entry point wrong")
    registry.check()
    lowered = hl.lower(case.module.text, oob=case.oob, registry=registry)
    assert lowered.records[0].rule == name
    assert "stablehlo.scatter" not in lowered.text
    return lowered


@pytest.mark.few(4)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_lowering_is_caught(name):
    """The scatter alone differs, and the verdict names it."""
    case = WRONG[name]
    verdict = hl.verify(case.module.text, lowered_wrongly(name), level="regions")
    assert (verdict.ok, verdict.exit_code) == (False, 1)
    assert [region.status for region in verdict.regions] == ["differs"]
    [line] = [line for line in verdict.lines() if ": differs: " in line]
    assert line.startswith("scatter 1 at ")
    assert f", written by {name}: differs: " in line


@pytest.mark.few(2)
@pytest.mark.parametrize("name", WRONG)
def test_the_whole_module_alone(name):
    """The module's own runs catch it too, or the verdict shows why they cannot: which, is told with each."""
    case = WRONG[name]
    module = verify_module(case.module.text, lowered_wrongly(name).text, Assumed(case.oob), Effort())
    status, _, reason = case.alone.partition(": ")
    assert module.status == status, module
    if status == "differs":
        assert [place.number for place in module.on_path] == [1]
    elif status == "not run":
        assert reason in module.reason


def test_the_harness_accepts_what_is_right(monkeypatch):
    """A right lowering under the same harness is not accused, so it is the wrong step that is caught."""

    def in_order(op):
        return one_by_one(op)

    monkeypatch.setitem(WRONG, "in_order", Wrong(in_order, POINTS, "xla", "equal"))
    assert hl.verify(POINTS.text, lowered_wrongly("in_order"), level="regions").ok
