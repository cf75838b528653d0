"""No wrong lowering is derived: what people write by mistake, and forms with one wrong step; runs refute most."""

import pytest

pytest.importorskip("z3")

import test_wrong_forms as forms
import test_wrong_on_purpose as by_name
import test_wrong_rules as steps
from wrong_lowerings_by_name import WRONG

import hlo_lower as hl
from hlo_lower.testing.prove.proof_campaign import find_refutation, prove_rules, rules_named
from hlo_lower.testing.prove.proof_case import ProofCase
from hlo_lower.verify.pull import derive

FIRST = {"clamp_for_drop", "first_writer_wins", "negative_zero_lost", "window_dropped_where_the_element_must_be"}
FIRST_FORMS = {"first_writer_wins", "every_row_taken_as_written", "zero_for_every_identity"}
FIRST_STEPS = {"shift_in_the_other_direction", "last_row_taken_as_the_first"}
TOO_LARGE = {"wrap_around_ignored"}
"""Its module has 200 updates."""


def check_wrong(before, after, oob="xla", *, is_small=True):
    """It is not derived, and some inputs of the solver's, or drawn ones, show a difference when they are run."""
    found = derive(before, after, seconds=10, oob=oob)
    assert not found
    if is_small:
        assert find_refutation(ProofCase(before, "", oob, {}), after, found.inputs), found.reason


def later(name, first):
    """A case of the sweep, unless it is one of the first."""
    return [] if name in first else [pytest.mark.sweep]


@pytest.mark.parametrize("name", [pytest.param(name, marks=later(name, FIRST)) for name in WRONG])
def test_a_lowering_that_is_wrong_in_one_way_is_refuted(name):
    """At the module that it is for, some indices and values show it when they are run."""
    case = WRONG[name]
    check_wrong(case.module.text, by_name.lowered_wrongly(name).stablehlo, case.oob)


@pytest.mark.parametrize(
    ("module", "rule", "fault"),
    [pytest.param(*case, marks=later(case[2].__name__, FIRST_FORMS)) for case in forms.WRONG],
    ids=lambda v: v if isinstance(v, str) else getattr(v, "__name__", ""),
)
def test_a_form_with_one_wrong_step_is_refuted(module, rule, fault, monkeypatch):
    """A fault in one step of a form for many windows."""
    fault(monkeypatch)
    text = module.text.replace("(%o, %j, %up)", "(%o, %i, %one)") if module is forms.SAME else module.text
    lowered = hl.lower(text, prefer=(rule,))
    check_wrong(text, lowered.stablehlo)


STEPS = next(mark for mark in steps.test_a_wrong_rule_is_caught.pytestmark if mark.name == "parametrize").args[1]


@pytest.mark.parametrize(
    ("name", "fault"),
    [pytest.param(*case, marks=later(case[1].__name__, FIRST_STEPS)) for case in STEPS],
    ids=lambda v: v if isinstance(v, str) else v.__name__,
)
def test_a_run_or_a_batch_with_one_wrong_step_is_refuted(name, fault, monkeypatch):
    """A fault in a rule of runs, batches and constants; one needs more updates than can be proved, and is unknown."""
    fault(monkeypatch)
    text = steps.CASES[name][0].text
    lowered = hl.lower(text, prefer=(steps.rule_of(name),))
    check_wrong(text, lowered.stablehlo, is_small=fault.__name__ not in TOO_LARGE)


def test_the_family_finds_a_wrong_step_by_itself(monkeypatch):
    """No module is given: the family of the rule has one that shows the fault, confirmed by XLA or by NumPy."""
    steps.last_row_taken_as_the_first(monkeypatch)
    [outcome] = prove_rules(rules_named(["wrapped_rows"]), shapes=4)
    assert outcome.status == "refuted"
    refuted = outcome.refuted[0]
    assert "XLA" in refuted.confirmed or "NumPy" in refuted.confirmed
    assert "stablehlo.scatter" in refuted.module
    assert "@main()" in refuted.module
    hl.read(refuted.module)  # it is a module
