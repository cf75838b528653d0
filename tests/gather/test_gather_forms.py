"""Every form of a gather computes what the NumPy reference and XLA's own gather compute, bit for bit."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from gather_cases import CASES

import hlo_lower as hl
from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.ir.builder import Builder
from hlo_lower.lowering import gather
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import gather as reference
from hlo_lower.verify.run import Executable

SCATTER = {"stablehlo.scatter": "lowered"}
NONE = {**SCATTER, "stablehlo.gather": "no gather"}
TARGETS = {
    "clamped_gather": hl.Target("clamps_not", refused=SCATTER, gather="in_bounds"),
    "dynamic_slices": hl.Target("no_sums", refused={**NONE, "stablehlo.reduce": "wide"}),
    "compare_sum": hl.Target("no_slices", refused={**NONE, "stablehlo.dynamic_slice": "slow"}),
    "while": hl.Target("no_unroll", refused={**NONE, "stablehlo.concatenate": "long", "stablehlo.reduce": "wide"}),
}
NAMES = [case.name for case in CASES]
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui32": np.uint32, "f64": np.float64}
INDEX_DTYPES = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "ui32": np.uint32, "i64": np.int64, "ui64": np.uint64}


def rules_of(lowered):
    """The rules that were used, by the notes."""
    return {note.rpartition("(gather_to_")[2].rstrip(")") for note in lowered.notes}


def check(case, rule, element="f32", index="i32"):
    """Lower a case and compare it with both judges."""
    text = case.text(element, index)
    lowered = hl.lower(text, target=TARGETS[rule])
    versions = [Executable(t, "exact") for t in (text, lowered.text)]
    for seed in range(3):
        dtype = bool if element == "i1" else DTYPES[element]
        operand, indices = case.draw(np.random.default_rng(seed), dtype, INDEX_DTYPES[index])
        expected = reference(operand, indices, case.numbers, case.window)
        for version in versions:
            (found,) = version.run([operand, indices])
            assert first_difference([expected], [found]) is None, (case.name, rule)
    return lowered


RULES = ("clamped_gather", "dynamic_slices", "while")


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("case", "rule"),
    [
        pytest.param(case, rule, id=f"{name}-{rule}", marks=[] if a % 3 == b else pytest.mark.sweep)
        for a, (case, name) in enumerate(zip(CASES, NAMES, strict=True))
        for b, rule in enumerate(RULES)
    ],
)
def test_every_form_of_a_gather(case, rule):
    """Batching dims, several components, the vector anywhere or implied, windows and empty shapes."""
    check(case, rule)


@pytest.mark.parametrize("case", [case for case in CASES if case.reads_rows], ids=lambda case: case.name)
def test_rows_by_comparing(case):
    """Whole rows are read by a sum over all of them; what is beside the row read does not reach it."""
    assert rules_of(check(case, "compare_sum")) == {"compare_sum"}


@pytest.mark.few(6)
@pytest.mark.parametrize("element", [*DTYPES, "i1"])
@pytest.mark.parametrize("rule", TARGETS)
def test_element_types(rule, element):
    """Each element type keeps its bits, NaN and the sign of zero included."""
    assert rules_of(check(CASES[0], rule, element)) == {rule}


@pytest.mark.few(6)
@pytest.mark.parametrize("index", INDEX_DTYPES)
@pytest.mark.parametrize("rule", TARGETS)
@pytest.mark.parametrize("case", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in (4, 5))])
def test_index_types(case, rule, index):
    """Narrow, unsigned and wide indices are clamped by their value, at both ends of their type."""
    check(CASES[case], rule, index=index)


def test_a_long_axis_and_a_narrow_index():
    """A limit that the indices' type does not hold bounds nothing: i8 indices into 300 rows stay as they are."""
    case = replace(CASES[0], operand=(300, 4))
    lowered = hl.lower(case.text(index="i8"), target=TARGETS["clamped_gather"])
    assert "minimum" not in lowered.text
    assert "maximum" in lowered.text
    check(case, "clamped_gather", index="i8")
    check(case, "while", index="ui8")


def never_clamped(self, build):
    """The indices as they are."""
    return self.indices


def one_too_far(self, build):
    """The indices beyond their place."""
    return build.elementwise("add", self.indices, build.constant(1, self.indices.static_shape, "i32"))


@pytest.mark.parametrize(("rule", "wrong"), [("compare_sum", never_clamped), ("while", one_too_far)])
def test_a_wrong_form_is_found(rule, wrong, monkeypatch):
    """Rows that nobody clamps are not hit by any row number, and wrong places give wrong rows: both are found."""
    monkeypatch.setattr(CanonicalGather, "clamped", wrong)
    with pytest.raises(AssertionError):
        check(CASES[0], rule)


def test_floats_that_are_added_as_floats_are_found(monkeypatch):
    """0.0 + -0.0 is 0.0: a sum of floats that begins at 0.0 loses a sign, and the comparison finds it."""
    monkeypatch.setattr(gather, "WIDE_FLOATS", frozenset())
    monkeypatch.setattr(Builder, "constant", constant_of_any_type)
    with pytest.raises(AssertionError):
        check(CASES[0], "compare_sum")


CONSTANT = Builder.constant


def constant_of_any_type(self, value, shape, element):
    """A constant of integers, or 0.0."""
    return CONSTANT(self, value if element.startswith(("i", "ui")) else "0.0", shape, element)
