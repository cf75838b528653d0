"""Judging: right lowerings pass, wrong ones are found by each of the two judges, and nothing is left out silently.

Sums whose order is free may have another one, and no more; sizes may be left open, of 0 as well, to be bound again.
"""

import re
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind
from hlo_lower.ir.reader import read
from hlo_lower.lowering.options import Options
from hlo_lower.lowering.pipeline import lower
from hlo_lower.lowering.scatter import numbered_rows
from hlo_lower.testing import arguments_of, case_of_seed, judge, module_text, reference
from hlo_lower.testing.fuzz import judging
from hlo_lower.testing.fuzz.campaign_worker import built_in
from hlo_lower.testing.fuzz.case import CELLS, STRATA
from hlo_lower.testing.fuzz.case_outcome import Tally
from hlo_lower.testing.fuzz.reassociated import allowances, difference_within
from hlo_lower.testing.fuzz.sensitivity import bites
from hlo_lower.verify.run import CannotRunError

POLICIES, SPEC = ("xla", "spec"), pytest.param("spec", marks=pytest.mark.sweep)
ROUND = len(STRATA)


def judged(seeds, oob, lower=None, size=16):
    """The outcomes of some seeds."""
    seeds, tally, outcomes = list(seeds), Tally(), []
    for start in range(0, len(seeds), size):
        found = judge([case_of_seed(s) for s in seeds[start : start + size]], lower or built_in(oob), oob)
        tally.extend(found.outcomes, found.seconds)
        outcomes += found.outcomes
    return outcomes, tally


@pytest.mark.parametrize("oob", ["xla", SPEC])
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
        plain = case.region.elements == case.operands and not case.region.captured_values and len(case.operands) == 1
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


FORMS = ("compare_reduce", "one_hot_dot", "sorted_segments")


def summing(element, family="add"):
    """The first case that adds to some elements of a float type several times, its third arguments, and its results."""
    for seed in range(6 * len(STRATA)):
        case = case_of_seed(seed)
        if case.intended[1] == family and case.operands == case.region.elements == (element,):
            for k in range(4):
                arguments = arguments_of(case, k)
                expected = reference(case, arguments, "xla")
                [allowed] = allowances(case, family, arguments, expected, "xla")
                changed = (allowed > 0) & np.isfinite(expected[0].astype(float)) & np.isfinite(allowed)
                if changed.any() and (allowed == 0).any():
                    return expected, [allowed], tuple(np.argwhere(changed)[0])
    raise AssertionError("no such case")


@pytest.mark.parametrize("element", ["f32", "f64", "bf16"])
def test_a_bound_lets_a_rounding_pass_and_nothing_larger(element):
    """A rounding of a sum is allowed, twice the allowance is not, and what nothing is added to stays as it is."""
    expected, allowed, place = summing(element)
    near, far = expected[0].copy(), expected[0].copy()
    near[place] = np.nextafter(near[place], near.dtype.type(np.inf))
    far[place] = far[place] + far.dtype.type(2 * allowed[0][place])
    assert difference_within(expected, [near], allowed) is None
    assert difference_within(expected, [far], allowed) is not None
    untouched = tuple(np.argwhere((allowed[0] == 0) & np.isfinite(expected[0]))[0])
    other = expected[0].copy()
    other[untouched] = np.nextafter(other[untouched], other.dtype.type(np.inf))
    assert difference_within(expected, [other], allowed) is not None


def test_assignments_are_allowed_nothing():
    """The bound is for sums and products of floats; of any other combiner, and of integers, every bit counts."""
    for seed in range(len(STRATA)):
        case = case_of_seed(seed)
        arguments = arguments_of(case, 0)
        expected = reference(case, arguments, "xla")
        if case.intended[1] in ("assign", "min/max", "and/or/xor"):
            assert not any(a.any() for a in allowances(case, "assign", arguments, expected, "xla"))
        if case.operands == ("i32",) and case.intended[1] == "add":
            assert not any(a.any() for a in allowances(case, "add", arguments, expected, "xla"))


def sums(count):
    """Seeds of cases that add floats at runtime places, several windows each."""
    cases = ((seed, case_of_seed(seed)) for seed in range(40 * len(STRATA)))
    kinds, floats = ("Points", "Windows", "Filter"), ("f32", "f16", "bf16")
    found = (s for s, c in cases if c.intended[0] in kinds and c.intended[1] == "add" and c.operands[0] in floats)
    return list(islice(found, count))


@pytest.mark.parametrize("oob", ["xla", SPEC])
@pytest.mark.parametrize("rule", FORMS)
def test_the_forms_sum_in_another_order(rule, oob):
    """Each form that adds in another order is within the bound on cases of floats, and is what they are lowered by."""
    cases = [case_of_seed(seed) for seed in sums(12)]
    outcomes = judge(cases, built_in(oob, (rule, "mask_elements=16"), "reassociate"), oob).outcomes
    assert [(o.name, o.failure) for o in outcomes if o.failure] == []
    assert sum(o.rule == rule for o in outcomes) >= 4


@pytest.mark.sweep
def test_a_lost_update_is_found(monkeypatch):
    """A form that leaves out what stands one place before is beyond the bound in a good part of the cases."""
    right = numbered_rows.shift_along

    def one_further(build, value, step, filling):
        return right(build, value, step + (value.static_shape[1] > step + 1), filling)

    monkeypatch.setattr(numbered_rows, "shift_along", one_further)
    cases = [case_of_seed(seed) for seed in sums(12)]
    outcomes = judge(cases, built_in("xla", ("sorted_segments",), "reassociate"), "xla").outcomes
    assert sum(bool(o.failure) for o in outcomes) >= 2


TYPE = re.compile(r"tensor<(?:\d+x)+[^<>]*(?:<[^<>]*>)?>")
PASSIVE = ("func.func", "return", "}) :", "module")
"""Beginnings of lines whose types may be changed: signatures, what returns, and the scatter's own."""


def open_sizes(text, seed):
    """A module with some of its sizes unknown: of each tensor type that stands only in signatures and on scatters."""
    rng, others = np.random.default_rng(seed), []
    for line in map(str.strip, text.splitlines()):
        if not line.startswith(PASSIVE) and "func.call" not in line and '"stablehlo.scatter"' not in line:
            others += TYPE.findall(line)
    replaced = {}
    for found in sorted(set(TYPE.findall(text)) - set(others)):
        *sizes, element = found.removeprefix("tensor<").split("x", found.count("x"))
        hidden = [("?" if rng.random() < 0.6 else s) if s.isdigit() else s for s in sizes]
        replaced[found] = "tensor<" + "x".join((*hidden, element))
    return TYPE.sub(lambda match: replaced.get(match[0], match[0]), text)


def shapes_of(text):
    """The shapes of @main's arguments."""
    graph = read(text)  # an argument lives as long as its module
    return [mlir.tensor_shape(a.raw.type) for a in graph.functions["main"].body.arguments]


def with_open_sizes(oob, seed):
    """A function that lowers a module with some of its sizes unknown, and gives them back afterwards."""

    def lowered(text):
        opened = open_sizes(text, seed)
        found = lower(opened, options=Options(oob=oob), name="fuzzed")
        pairs = enumerate(zip(shapes_of(text), shapes_of(opened), strict=True))
        dims = ((n, d, *sizes) for n, pair in pairs for d, sizes in enumerate(zip(*pair, strict=True)))
        sizes = {f"arg{n}.{d}": size for n, d, size, left in dims if left is None and size is not None}
        found.graph = bind(found.graph, sizes) if sizes else found.graph
        return found

    return lowered


def failures(oob, seeds, size=10):
    """What fails, one message for each case."""
    cases, told = [case_of_seed(seed) for seed in seeds], []
    for k in range(0, len(cases), size):
        batch = cases[k : k + size]
        assert "?x" in open_sizes(module_text(batch), k)
        told += [f"{o.name}: {o.failure}" for o in judge(batch, with_open_sizes(oob, k), oob).outcomes if o.failure]
    return told


def test_sizes_are_left_open():
    """Types of signatures and scatters lose sizes, of 0 as well; those of other ops do not."""
    text = module("%o: 5x4xf32, %e: 0x3xf32", "%k = constant 1.0 : 7xf32; return %o")
    found = {open_sizes(text, seed) for seed in range(20)}
    assert len({t.splitlines()[0] for t in found}) > 3
    assert all("tensor<7xf32>" in t for t in found)
    assert {"tensor<0x" in t for t in found} == {True, False}


@pytest.mark.parametrize("oob", ["xla", SPEC])
def test_fuzzed_scatters_of_dynamic_shape(oob):
    """No case differs from the reference, whichever of its sizes are left open."""
    assert failures(oob, range(40)) == []


@pytest.mark.sweep
@pytest.mark.parametrize("oob", POLICIES)
def test_many_fuzzed_scatters_of_dynamic_shape(oob):
    """The same at length."""
    assert failures(oob, range(1_000, 3_000)) == []
