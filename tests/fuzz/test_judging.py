"""Judging: right lowerings pass, wrong ones are found by each of the two judges, and nothing is left out silently."""

from collections import Counter

import pytest

from hlo_lower.testing import arguments_of, case_of_seed, judge, module_text, reference
from hlo_lower.testing.fuzz import judging
from hlo_lower.testing.fuzz.campaign_worker import built_in
from hlo_lower.testing.fuzz.case import CELLS, STRATA
from hlo_lower.testing.fuzz.case_outcome import Tally
from hlo_lower.testing.fuzz.sensitivity import bites
from hlo_lower.verify.run import CannotRunError

POLICIES = ("xla", "spec")
ROUND = len(STRATA)


def judged(seeds, oob, lower=None, size=16):
    """The outcomes of some seeds."""
    seeds, tally, outcomes = list(seeds), Tally(), []
    for start in range(0, len(seeds), size):
        found = judge([case_of_seed(s) for s in seeds[start : start + size]], lower or built_in(oob), oob)
        tally.extend(found.outcomes, found.seconds)
        outcomes += found.outcomes
    return outcomes, tally


@pytest.mark.parametrize("oob", ["xla", pytest.param("spec", marks=pytest.mark.sweep)])
def test_a_round_through_the_cells_matches(oob):
    """A case for every other cell gives what the reference and XLA say, bit for bit; at least 30 % of them bite."""
    outcomes, tally = judged(range(POLICIES.index(oob), len(CELLS), 2), oob)
    assert [(o.name, o.failure) for o in outcomes if o.failure] == []
    both, alone = (tally.count("judged by", judges) for judges in ("reference and XLA", "reference"))
    assert len(outcomes) == tally.count("cases") == both + alone
    assert tally.count("bites", "any") >= 0.3 * len(outcomes)
    assert both >= 0.6 * len(outcomes)
    assert sum(tally.of("not judged by XLA").values()) >= alone


@pytest.mark.sweep
@pytest.mark.parametrize("oob", POLICIES)
@pytest.mark.parametrize("block", range(8))
def test_thousands_match(oob, block):
    """Two thousand cases a policy give what the reference and XLA say."""
    outcomes, _ = judged(range(20_000 + 250 * block, 20_250 + 250 * block), oob)
    assert [(o.name, o.failure) for o in outcomes if o.failure] == []


def biting(what, oob, count):
    """Seeds of cases of windows at runtime starts, which a fault of a kind changes and which XLA can judge."""
    found = []
    for seed in range(3 * ROUND):
        case = case_of_seed(seed)
        plain = case.region.elements == case.operands and not case.region.captured and len(case.operands) == 1
        plain &= case.index_type in ("i32", "i64") and bool(case.form.columns) and len(found) < count
        if plain and case.intended[0] in ("Windows", "Tile") and case.intended[1] in ("assign", "add", "sub"):
            sets = [arguments_of(case, k) for k in range(4)]
            if any(what in bites(case, a, reference(case, a, oob), oob) for a in sets):
                found.append(seed)
    return found


@pytest.mark.parametrize("oob", POLICIES)
def test_the_other_policy_is_found(oob):
    """A lowering that drops elements where it should drop windows, or the other way round, differs."""
    other = POLICIES[1 - POLICIES.index(oob)]
    outcomes, _ = judged(biting("overhang", oob, 2), oob, built_in(other))
    assert len(outcomes) == 2
    assert all("the reference says result 0" in o.failure for o in outcomes)


def test_a_lost_guard_is_found(unguarded):
    """A lowering that clamps instead of dropping differs in cases that a drop changes, and in them alone."""
    outcomes, _ = judged([*biting("drop", "xla", 4), *range(6)], "xla")
    assert sum(bool(o.failure) for o in outcomes[:4]) >= 2
    assert {o.name for o in outcomes if o.failure} <= {o.name for o in outcomes if "drop" in o.bites}


def test_xla_judges_apart_from_the_reference(monkeypatch):
    """Where the reference makes the same mistake as the lowering, XLA's own scatter tells."""
    seeds = biting("overhang", "xla", 2)
    monkeypatch.setattr(judging, "reference", lambda case, a, oob: reference(case, a, "spec"))
    outcomes, _ = judged(seeds, "xla", built_in("spec"))
    assert ["XLA says result 0" in o.failure for o in outcomes] == [True, True]


def test_a_wrong_reference_is_found(monkeypatch):
    """The lowered module is compared with the reference: where that is wrong, every case with a result differs."""

    def wrong(case, arguments, oob):
        return [r ^ 1 for r in reference(case, arguments, oob)]

    cases = {seed: case_of_seed(seed) for seed in range(ROUND)}
    seeds = [s for s, c in cases.items() if c.region.elements == ("i32",) and 0 not in c.form.operand]
    monkeypatch.setattr(judging, "reference", wrong)
    outcomes, _ = judged(seeds[:3], "xla")
    assert [bool(o.failure) for o in outcomes] == [True] * 3


def test_what_is_not_lowered_is_a_failure():
    """A batch that does not lower is halved: the case at fault fails, the others are judged."""
    right, cases = built_in("xla"), [case_of_seed(s) for s in range(4)]
    line = next(line for line in module_text(cases).splitlines() if "@case1(" in line and "private" in line)
    result = line.split(" -> ")[1].split(" {")[0]

    def lower(text):
        if result in text:
            raise KeyError("no rule")
        return right(text)

    outcomes = judge(cases, lower, "xla").outcomes
    assert [o.failure for o in outcomes] == ["", "not lowered: KeyError: 'no rule'", "", ""]
    assert [o.name for o in outcomes] == [c.name for c in cases]


def test_what_xla_does_not_compile_is_counted(monkeypatch):
    """Where XLA refuses the original, the reference judges alone, and the reason is told."""
    right = judging.Executable

    def refusing(text, rounding):
        if "stablehlo.scatter" in text:
            raise CannotRunError("XLA does not compile it: no scatter today")
        return right(text, rounding)

    monkeypatch.setattr(judging, "Executable", refusing)
    outcomes, tally = judged(range(3), "xla")
    assert Counter(o.judges for o in outcomes) == {("reference",): 3}
    reasons = tally.of("not judged by XLA")
    assert sum(reasons.values()) == 3
    assert reasons["XLA does not compile it: no scatter today"] >= 1
