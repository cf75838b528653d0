"""Floats in total order on a target that cannot bitcast them: by comparisons and 1 / x, where NaN was computed."""

import re

import numpy as np
import pytest
from rewrites import assert_same as same
from rewrites import fault, swept
from rule_examples import target
from untyped_mlir import module, of

import hlo_lower as hl
from hlo_lower.facts.sort import key_columns
from hlo_lower.facts.sort.sort_facts import SortStrategy
from hlo_lower.lowering import refused_forms
from hlo_lower.lowering import sort as lowering
from hlo_lower.verify.align import one_nan
from hlo_lower.verify.pull import derive

NPU = target("plain_floats", "sort", "bitcast_convert")
COMPARES = target("compares", "bitcast_convert", refused_forms=["compare TOTALORDER"])
TURNED = "%{x}t = xor %m, %{x}i"
ROWS = 12


def keyed(name, turned, bits):
    """The integer in the total order of one side's float, as XLA's comparators compute it."""
    return (
        f"%{name}i = bitcast_convert %{name} -> i{bits}; %{name}u = bitcast_convert %{name} -> ui{bits}; "
        f"%{name}n = compare LT, %{name}i, %z; {turned.format(x=name, bits=bits)}; "
        f"%{name}k = select %{name}n, %{name}t, %{name}i"
    )


def comparator(turned="", direction="GT", bits=32, most=None):
    """A comparator of two floats and of what goes along: by TOTALORDER, or by their bits, which are turned so."""
    if not turned:
        return f"%r = compare {direction}, %a, %b, TOTALORDER; return %r"
    most = (1 << bits - 1) - 1 if most is None else most
    constants = f"%z = constant 0 : i{bits}; %m = constant {most} : i{bits}; %w = constant {most} : ui{bits}"
    sides = "; ".join(keyed(name, turned, bits) for name in "ab")
    return f"{constants}; {sides}; %r = compare {direction}, %ak, %bk; return %r"


GREATEST_FIRST = comparator()


def sorting(compared=GREATEST_FIRST, made="add %x, %x", element="f32", rows=ROWS, lines=""):
    """A sort of what is made of an argument behind some lines, with positions beside it; the first rows are read."""
    cut = "" if rows == ROWS else f"%p = slice %s [0:{rows}]; %q = slice %t [0:{rows}]"
    text = (
        f"{lines}%y = {made}\n%i = iota dim = 0 : {of([ROWS], 'i32')}\n"
        f"%s, %t = sort(%y, %i) <dimension = 0 : i64, is_stable = true> {{%a, %b, %c, %d: {compared}}}\n{cut}"
    )
    return module(f"%x: {of([ROWS], element)}", text, "%p, %q" if cut else "%s, %t")


def numbers(dtype, seed=0):
    """Numbers with ties, zeros of both signs, infinities, the positive NaN."""
    drawn = np.random.default_rng(seed).permutation([1, 1, -2, 3, 3, 0.0, -0.0, 0.0, -0.0, np.inf, -np.inf, np.nan])
    return drawn.astype(dtype)


BITS = {
    "xor": TURNED,
    "the other way": "%{x}t = xor %{x}i, %m",
    "difference": "%{x}t = subtract %m, %{x}i",
    "unsigned": "%{x}v = subtract %w, %{x}u; %{x}t = bitcast_convert %{x}v -> i{bits}",
    "total order": "",
}


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("turned", BITS)
def test_rows_are_as_by_their_bits(turned, element):
    """However the comparator writes the total order, down and up; what is left has no bitcast."""
    for direction in ("GT", "LT"):
        text = sorting(comparator(BITS[turned], direction, int(element[1:])), element=element)
        lowered = hl.lower(text, target=NPU)
        assert not re.search("stablehlo.(sort|bitcast_convert)", lowered.text)
        assert len(lowered.notes) == 1
        for seed in range(3):
            same(text, lowered, numbers(f"float{element[1:]}", seed))


@pytest.mark.parametrize("strategy", swept(tuple(SortStrategy)[2:], SortStrategy.NETWORK, SortStrategy.ROUNDS))
def test_by_every_strategy(strategy, only):
    """Three columns are compared for one."""
    only(strategy)
    text = sorting(rows=5)
    lowered = hl.lower(text, target=NPU)
    assert "stablehlo.sort" not in lowered.text
    assert f"(sort_to_{strategy.value})" in lowered.notes[0]
    for seed in range(3):
        same(text, lowered, numbers("float32", seed))


@pytest.mark.parametrize(
    ("made", "is_computed"),
    [
        ("add %x, %x", True),
        ("maximum %x, %x", True),
        ("negate %x", False),
        ("abs %x", False),
        ("reverse %x, dims = [0]", False),
        ("select %nan, %x2, %x", True),
        ("select %number, %x2, %x", False),
    ],
)
def test_a_nan_of_any_sign_needs_the_bits(made, is_computed):
    """An argument's NaN has the sign that it was given, and what copies, negates or takes the magnitude keeps that."""
    lines = "%x2 = add %x, %x\n%nan = compare NE, %x, %x\n%number = compare EQ, %x, %x\n"
    lowered = hl.lower(sorting(made=made, lines=lines), target=NPU)
    assert ("stablehlo.sort" not in lowered.text) == is_computed
    if not is_computed:
        assert "may be NaN of any sign" in lowered.notes[0]


@pytest.mark.parametrize(
    ("turned", "direction", "most"),
    [
        ("%{x}t = xor %m, %{x}i", "GT", 0x7FFFFFFE),
        ("%{x}t = add %m, %{x}i", "GT", None),
        ("%{x}t = subtract %{x}i, %m", "GT", None),
        ("%{x}t = xor %m, %z", "GT", None),
    ],
)
def test_other_integers_of_the_bits_are_no_total_order(turned, direction, most):
    """The sort stays."""
    assert "stablehlo.sort" in hl.lower(sorting(comparator(turned, direction, most=most)), target=NPU).text


def comparing(*directions):
    """Comparisons in total order of what is computed."""
    lines = "\n".join(f"%r{k} = compare {direction}, %y, %w, TOTALORDER" for k, direction in enumerate(directions))
    takes = f"%x: {of([ROWS], 'f32')}, %v: {of([ROWS], 'f32')}"
    return module(
        takes, f"%y = add %x, %x\n%w = add %v, %v\n{lines}", ", ".join(f"%r{k}" for k in range(len(directions)))
    )


COMPARING, TWO = comparing("EQ", "NE", "LT", "LE", "GT", "GE"), comparing("LT", "NE")


def test_comparisons_in_total_order():
    """Every direction; of what may be NaN with a sign none."""
    lowered = hl.lower(COMPARING, target=COMPARES)
    assert "TOTALORDER" not in lowered.text
    one = numbers("float32")
    for turn in range(ROWS):
        same(COMPARING, lowered, one, np.roll(one, turn))
    kept = hl.lower(COMPARING.replace("add %x, %x", "negate %x"), target=COMPARES)
    assert kept.text.count("TOTALORDER") == 6


def without(number):
    """A wrong form: a column is left out."""

    def columns(right, build, value):
        found = right(build, value)
        return [*found[:number], *found[number + 1 :]]

    return columns


def turned(right, build, value):
    """A wrong form: NaN before all numbers."""
    is_nan, *rest = right(build, value)
    return [build.elementwise("negate", is_nan), *rest]


def zeros_turned(right, build, value):
    """A wrong form: 0.0 before -0.0."""
    *rest, is_zero = right(build, value)
    return [*rest, build.elementwise("negate", is_zero)]


def the_number_itself(_right, _build, value):
    """A wrong form: x for 1 / x, which tells no zeros apart."""
    return value


def the_other_way(right, build, x, y):
    """A wrong form: the operands are exchanged."""
    return right(build, y, x)


WRONG = [without(0), without(2), turned, zeros_turned]


WRONG_STEPS = [(key_columns, "total_order_columns", wrong) for wrong in WRONG] + [
    (refused_forms, "inverse", the_number_itself),
    (refused_forms, "_is_before", the_other_way),
    (refused_forms, "has_sign", lambda _, build, x: build.compare(x, "LT", x)),
    (refused_forms, "may_be_negative_zero", lambda *_: False),
]


@pytest.mark.few(2)
@pytest.mark.usefixtures("judged_by_runs")
@pytest.mark.parametrize(("owner", "name", "wrong"), WRONG_STEPS)
def test_runs_accuse_a_wrong_form(owner, name, wrong, monkeypatch):
    """A column is missing, or goes the other way; zeros are one."""
    fault(owner, name)(wrong)(monkeypatch)
    source, npu = (sorting(), NPU) if owner is key_columns else (TWO, COMPARES)
    verdict = hl.verify(source, hl.lower(source, target=npu), level="regions")
    assert "differs" in {region.status for region in verdict.regions}


@pytest.mark.few(2)
@pytest.mark.parametrize("wrong", [None, *WRONG])
def test_a_wrong_form_is_not_derived(wrong, monkeypatch):
    """Nor is the right one of an argument whose NaN may be any."""
    pytest.importorskip("z3")
    source = sorting(made="reverse %x, dims = [0]")
    monkeypatch.setattr(lowering, "may_have_one_nan", lambda *_: True)
    if wrong is not None:
        fault(key_columns, "total_order_columns")(wrong)(monkeypatch)
    lowered = hl.lower(source, target=NPU).text
    assert bool(derive(source, lowered, one_nan=(0,), seconds=1)) == (wrong is None)
    assert wrong is not None or not derive(source, lowered, seconds=1)


@pytest.mark.usefixtures("in_full_time")
@pytest.mark.parametrize(("source", "npu"), [(sorting(), NPU), (TWO, COMPARES)])
def test_it_is_derived(source, npu):
    """By the law that leaves the sign of a computed NaN open; of an argument, whose sign is given, it is not."""
    pytest.importorskip("z3")
    verdict = hl.verify(source, hl.lower(source, target=npu), level="regions")
    assert {region.how for region in verdict.regions} == {"derived"}
    assert all({"NaN of arithmetic", "division by zero"} <= set(region.laws) for region in verdict.regions)


def test_steps_do_not_depend_on_what_was_derived_before():
    """The same questions take the same steps of the solver again: a verdict is not one of the order of verdicts."""
    pytest.importorskip("z3")
    lowered = hl.lower(TWO, target=COMPARES).text
    [steps] = {derive(TWO, lowered, seconds=1).seconds for _ in range(3)}
    assert steps > 0


@pytest.mark.usefixtures("judged_by_runs")
def test_runs_say_what_they_leave_out():
    """They draw no NaN with a sign where arithmetic computes it."""
    [region] = hl.verify(sorting(), hl.lower(sorting(), target=NPU), level="regions").regions
    assert region.status == "equal"
    assert one_nan.NOT_DRAWN in region.excluded


@pytest.mark.usefixtures("judged_by_runs")
def test_a_verdict_on_computed_floats_is_none_on_given_ones(monkeypatch):
    """The pieces of both are the same: where their floats come from is of what is remembered."""
    monkeypatch.setattr(lowering, "may_have_one_nan", lambda *_: True)
    for made, status in (("add %x, %x", "equal"), ("reverse %x, dims = [0]", "differs")):
        source = sorting(made=made)
        verdict = hl.verify(source, hl.lower(source, target=NPU), level="regions")
        assert [region.status for region in verdict.regions] == [status]


@pytest.mark.usefixtures("judged_by_runs")
def test_the_sign_of_an_arguments_nan_counts(monkeypatch):
    """A wrong fact: a NaN that is given may not be taken for the positive one."""
    monkeypatch.setattr(lowering, "may_have_one_nan", lambda *_: True)
    source = sorting(made="reverse %x, dims = [0]")
    verdict = hl.verify(source, hl.lower(source, target=NPU), level="regions")
    assert [region.status for region in verdict.regions] == ["differs"]
