"""Every rule is proved on shapes of its family; the whole families are behind the sweep marker."""

import json
import re

import pytest

pytest.importorskip("z3")

from hlo_lower.base.errors import EXIT_BAD_INPUT, EXIT_DIFFERS, EXIT_OK
from hlo_lower.base.registry import RuleList, When
from hlo_lower.cli import main
from hlo_lower.lowering.kinds import KINDS, default_registry, registry_with
from hlo_lower.lowering.single_ops.plain_op import PLAIN, PlainOp
from hlo_lower.testing.prove import proof_campaign
from hlo_lower.testing.prove.op_families import has_plain_cases
from hlo_lower.testing.prove.proof_campaign import FAMILIES, prove_rules, rules_named

SORTED_BY_RUN = ("sorted_last_writer", "sorted_segments", "rounds")
"""Rules that sort rows, which ascend already along one scatter dim beside a run along the other."""

RULES = [rule.short_name for rule in rules_named([])]


def test_every_op_with_rules_has_a_family():
    """A rule for another op would never be tried."""
    # jaxlib's own passes, which are no rules of ours to prove
    approximated = {"chlo.", "stablehlo.custom_call", "older op"}
    # The bits of floats have no meaning to the prover; all 2^16 numbers are tried, and the edges of wider ones.
    rounded = {
        "stablehlo. on floats",
        "stablehlo. on complex numbers",
        "op in a form",
        "linear algebra",
        "op of many dims",
    }
    without = {kind.name for kind in KINDS} - {*FAMILIES, *approximated, *rounded}
    assert without == set(), "give each a family in FAMILIES of hlo_lower/testing/prove/proof_campaign.py"
    assert {*FAMILIES, *approximated, *rounded} - {kind.name for kind in KINDS} == set()
    beyond = [rule for rule in default_registry().rules(PLAIN) if not has_plain_cases(rule)]  # of floats, and windows
    assert len(RULES) + len(beyond) == sum(len(default_registry().rules(op)) for op in FAMILIES)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_proved(name):
    """The first modules of its family that it takes are proved for all indices and values."""
    [outcome] = prove_rules(rules_named([name]), shapes=3 if name.startswith("dynamic_shape") else 1, timeout_s=60)
    assert outcome.proved, outcome
    assert not outcome.refuted


@pytest.mark.sweep
@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_proved_on_its_whole_family(name):
    """No module of the family is refuted; what is unknown is counted, and is little."""
    [outcome] = prove_rules(rules_named([name]), timeout_s=20)
    assert not outcome.refuted
    assert outcome.proved > outcome.tried_count // 2


def prove_some(name, monkeypatch, is_wanted):
    """What comes of a rule on part of its family, and how many modules that is."""
    [rule] = rules_named([name])
    cases = [case for case in FAMILIES[rule.op](rule) if is_wanted(case)]
    monkeypatch.setitem(FAMILIES, rule.op, lambda _: iter(cases))
    [outcome] = prove_rules([rule], timeout_s=60)
    assert outcome.tried_count + outcome.other == len(cases)
    return outcome


@pytest.mark.parametrize(
    ("name", "part", "count"),
    [
        ("sorted_segments", "3x3:.* i8 sorted by run, rows along dim 1", 1),
        *(pytest.param(name, "sorted by run", 8, marks=pytest.mark.sweep) for name in SORTED_BY_RUN),
    ],
)
def test_rows_that_ascend_beside_a_run_are_proved(name, part, count, monkeypatch):
    """The places that are written need not ascend there, though the rows do: the rule takes it and is right."""
    outcome = prove_some(name, monkeypatch, lambda case: re.search(part, case.name) is not None)
    assert (outcome.tried_count, outcome.proved) == (count, count), outcome


@pytest.mark.parametrize(
    "name",
    [
        "dynamic_shape_runtime_window",
        pytest.param("dynamic_shape_gather_to_clamped_gather", marks=pytest.mark.sweep),
    ],
)
def test_sizes_of_zero_at_run_time_are_proved(name, monkeypatch):
    """A lowered module of dynamic shape has a static form where a size is 0, too, and it is proved: none is unknown."""
    outcome = prove_some(name, monkeypatch, lambda case: re.search("<0x|x0x", case.text) is not None)
    assert outcome.tried_count > 0
    assert (outcome.unknown, outcome.refuted, outcome.proved) == ([], [], outcome.tried_count)


def test_the_table(capsys):
    """A line for each rule, and how many are proved."""
    assert main(["prove", "updates", "guarded_dynamic_update_slice", "--shapes", "2"]) == EXIT_OK
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["rule", "proved", "tried", "unknown", "refuted", "seconds"]
    assert [row.split()[:5] for row in rows[:2]] == [
        ["guarded_dynamic_update_slice", "2", "2", "0", "0"],
        ["updates", "2", "2", "0", "0"],
    ]
    assert "2 of 2 rules have proved shapes and none refuted; 4 of 4 shapes" in rows


def test_what_is_unknown_is_listed_and_not_proved(capsys):
    """Without time nothing is proved, and the table says why."""
    assert main(["prove", "updates", "--shapes", "2", "--timeout", "1e-9"]) == EXIT_OK
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:5] == ["updates", "0", "2", "2", "0"]
    assert "updates: unknown: 2 because of no time is left" in out
    assert "0 of 1 rules have proved shapes" in out


def test_a_refuted_rule_is_shown_as_a_module(capsys, monkeypatch):
    """The exit code is 1, and the counterexample is a module with its indices and updates."""
    from hlo_lower.facts.scatter.layout import Arrangement

    monkeypatch.setattr(Arrangement, "first_of", lambda self, build, run, last: last)
    assert main(["prove", "wrapped_rows", "--shapes", "4", "--format", "json"]) == EXIT_DIFFERS
    [rule] = json.loads(capsys.readouterr().out)["rules"]
    assert (rule["rule"], rule["status"]) == ("wrapped_rows", "refuted")
    assert "stablehlo.constant" in rule["refuted"][0]["module"]
    assert main(["prove", "wrapped_rows", "--shapes", "4"]) == EXIT_DIFFERS
    assert "wrapped_rows: refuted: " in capsys.readouterr().out


def test_an_unknown_rule_is_refused(capsys):
    """The message says how many there are, and where they are listed."""
    assert main(["prove", "no_such_rule"]) == EXIT_BAD_INPUT
    message = capsys.readouterr().err
    assert message.startswith("prove: no rule named 'no_such_rule'\n  facts:   there are ")
    assert message.endswith("  next:    hlo-lower rules\n")


def test_a_rule_without_a_family_is_told_so(capsys, monkeypatch):
    """It is no unknown rule; nor does a plug-in's rule for two ops, which has none, stand in the way of others."""
    rules = RuleList()
    two = {PlainOp.CBRT, PlainOp.CLAMP}
    rules.lowers(PLAIN, named=two, when=When("never", lambda _: False), form="none")(two_to_none)
    registry = registry_with(())
    registry.extend(rules)
    monkeypatch.setattr(proof_campaign, "installed_registry", lambda: registry)
    for name in ("two_to_none", "cbrt_to_power", "chlo_to_stablehlo"):
        assert main(["prove", name]) == EXIT_BAD_INPUT
        assert capsys.readouterr().err.startswith(f"prove: {name} has no family of modules to be proved on\n")
    assert "clamp_to_minimum" in {rule.short_name for rule in rules_named([])}


def two_to_none(op):
    """A rule that is never taken."""
    raise AssertionError(op)


def test_without_z3_the_command_says_how_to_install_it(capsys, monkeypatch):
    """The message ends with the command to type."""
    from hlo_lower.verify.pull import solver

    monkeypatch.setattr(solver, "find_spec", lambda name: None)
    assert main(["prove"]) == EXIT_BAD_INPUT
    assert capsys.readouterr().err.endswith("  next:    pip install z3-solver\n")
