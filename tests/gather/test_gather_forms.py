"""Every form of a gather computes what the NumPy reference and XLA's own gather compute, bit for bit."""

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from gather_cases import CASES, Case

import hlo_lower as hl
from hlo_lower.facts.gather.canonical import CanonicalGather
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.mlir import GatherNumbers
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
    "gather_at_others": hl.Target("signed", refused=SCATTER, op_dtypes={"stablehlo.gather": ["i32", "i64", "f32"]}),
    "numbered_rows": hl.Target("rows", refused=SCATTER, refused_forms=["gather of other than rows"]),
    "numbered_rows of many dims": hl.Target("flat", refused=SCATTER, max_rank={"stablehlo.gather": 4, "*": 4}),
    "while": hl.Target("no_unroll", refused={**NONE, "stablehlo.concatenate": "long", "stablehlo.reduce": "wide"}),
}
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "ui32": np.uint32, "f64": np.float64, "i1": bool}
TYPES |= {"ui8": np.uint8, "i32": np.int32, "i64": np.int64, "ui64": np.uint64}


def rules_of(lowered):
    """The rules that were used, by the notes."""
    return {note.rpartition("(gather_to_")[2].rstrip(")") for note in lowered.notes}


def check(case, rule, element="f32", index="i32"):
    """Lower a case and compare it with both judges."""
    text = case.text(element, index)
    lowered = hl.lower(text, target=TARGETS[rule])
    versions = [Executable(t, "exact") for t in (text, lowered.text)]
    for seed in range(3):
        operand, indices = case.draw(np.random.default_rng(seed), TYPES[element], TYPES[index])
        expected = reference(operand, indices, case.numbers, case.window)
        for version in versions:
            (found,) = version.run([operand, indices])
            assert first_difference([expected], [found]) is None, rule
    return lowered


OF_ROWS = [rule for rule in TARGETS if not rule.startswith(("numbered_rows", "gather_at_others"))]
"""Those that rows become, too."""

FORMS = [
    (name, rule)
    for rule in [*OF_ROWS, "numbered_rows"]
    for name, case in CASES.items()
    if rule != "compare_sum" or case.reads_rows
]


@pytest.mark.few(13)
@pytest.mark.parametrize(("name", "rule"), FORMS)
def test_every_form_of_a_gather(name, rule):
    """Batching dims, several components, the vector anywhere or implied, windows and empty shapes; rows are read by a
    sum over all of them as well."""
    lowered = check(CASES[name], rule)
    assert rule != "compare_sum" or rules_of(lowered) == {"compare_sum"}


@pytest.mark.few(5)
@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "ui32", "f64", "i1"])
@pytest.mark.parametrize("rule", OF_ROWS)
def test_element_types(rule, element):
    """Each element type keeps its bits, NaN and the sign of zero included."""
    assert rules_of(check(CASES["rows"], rule, element)) == {rule}


@pytest.mark.few(5)
@pytest.mark.parametrize("index", ["i8", "ui8", "i32", "ui32", "i64", "ui64"])
@pytest.mark.parametrize("rule", OF_ROWS)
@pytest.mark.parametrize("name", ["rows", *(pytest.param(n, marks=pytest.mark.sweep) for n in ("pages", "points"))])
def test_index_types(name, rule, index):
    """Narrow, unsigned and wide indices are clamped by their value, at both ends of their type."""
    check(CASES[name], rule, index=index)


@pytest.mark.few(3)
@pytest.mark.parametrize("index", ["i8", "ui8", "ui32", "ui64"])
@pytest.mark.parametrize("name", ["rows", "offsets in between", "windows"])
def test_starts_of_a_type_that_is_refused_are_in_another(name, index):
    """A gather is not written out for the type of its starts alone; i32 is left as it is."""
    assert rules_of(check(CASES[name], "gather_at_others", index=index)) == {"gather_at_others"}
    assert not rules_of(hl.lower(CASES[name].text(), target=TARGETS["gather_at_others"]))


def test_a_long_axis_and_a_narrow_index():
    """A limit that the indices' type does not hold bounds nothing: i8 indices into 300 rows stay as they are."""
    case = replace(CASES["rows"], operand=(300, 4))
    lowered = check(case, "clamped_gather", index="i8")
    assert ("minimum" in lowered.text, "maximum" in lowered.text) == (False, True)
    check(case, "while", index="ui8")


CONSTANT = Builder.constant


def never_clamped(monkeypatch):
    monkeypatch.setattr(CanonicalGather, "clamped_indices", lambda self, build: self.indices)


def one_too_far(monkeypatch):
    def moved(self, build):
        return build.elementwise("add", self.indices, build.constant(1, self.indices.static_shape, "i32"))

    monkeypatch.setattr(CanonicalGather, "clamped_indices", moved)


def added_as_floats(monkeypatch):
    """0.0 + -0.0 is 0.0: a sum of floats that begins at 0.0 loses a sign."""

    def constant(self, value, shape, element):
        return CONSTANT(self, value if element.startswith(("i", "ui")) else "0.0", shape, element)

    monkeypatch.setattr(gather, "WIDE_FLOATS", frozenset())
    monkeypatch.setattr(Builder, "constant", constant)


WRONG = [
    ("rows", "compare_sum", never_clamped),
    ("rows", "while", one_too_far),
    ("rows", "compare_sum", added_as_floats),
    ("batching", "numbered_rows", never_clamped),
]


@pytest.mark.parametrize(("name", "rule", "wrong"), WRONG)
def test_a_wrong_form_is_found(name, rule, wrong, monkeypatch):
    """Rows that nobody clamps are not hit by any row number, and wrong places give wrong rows."""
    wrong(monkeypatch)
    with pytest.raises(AssertionError):
        check(CASES[name], rule)


def test_what_is_read_by_rows_stays():
    """Rows of one indexed dim or several stay; windows, parts of rows and batches are rows by their numbers."""
    kept, changed = ("rows", "pages", "points", "two components"), ("windows", "batching", "offsets in between")
    found = [
        {rule for name in names for rule in rules_of(check(CASES[name], "numbered_rows"))} for names in (kept, changed)
    ]
    assert found == [set(), {"numbered_rows"}]


def test_a_gather_of_more_dims_than_there_are_reads_rows():
    """Where the result, the indices or the operand have more dims than the target takes; one with fewer stays."""
    assert not rules_of(check(CASES["rows"], "numbered_rows of many dims"))
    numbers = GatherNumbers([1], [0, 2], [], [], [0, 2], 5)
    case = Case((3, 2, 4), (1, 2, 1, 2, 2, 2), numbers, (1, 2, 1), (1, 2, 2, 1, 2, 2))
    lowered = check(case, "numbered_rows of many dims")
    assert "numbered_rows" in rules_of(lowered)
    [read] = re.findall(r"stablehlo.gather.*\) -> tensor<(.*)xf32>", lowered.text)
    assert read.count("x") == 1
