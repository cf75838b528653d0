"""Traps of runs of rows: shifted into bounds, wrapped, next to the ends of their type."""

from typing import Any

import numpy as np
import pytest
from one_scatter import DTYPES, INT_MAX, INT_MIN, Case, f32, ops_of_size, rows, some, tensor

import hlo_lower as hl
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.definitions import scatter
from hlo_lower.verify.run import Executable

RUN_LINES = """
    %base = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<{e}>) -> tensor<{n}x1x{e}>
    %iota = stablehlo.iota dim = 0 : tensor<{n}x1x{e}>
    %x = stablehlo.add %base, %iota : tensor<{n}x1x{e}>"""

NORMALISED_LINES = """
    %zero = stablehlo.constant dense<0> : tensor<{n}x1x{e}>
    %by = stablehlo.constant dense<{size}> : tensor<{n}x1x{e}>
    %above = stablehlo.add %x, %by : tensor<{n}x1x{e}>
    %below = stablehlo.compare LT, %x, %zero, SIGNED : (tensor<{n}x1x{e}>, tensor<{n}x1x{e}>) -> tensor<{n}x1xi1>
    %y = stablehlo.select %below, %above, %x : tensor<{n}x1xi1>, tensor<{n}x1x{e}>"""


def run_text(case: Case, rows_: int, element: str = "i32", offset: int = 0) -> str:
    """The module of a case with base + iota as its indices, normalised where an offset is given."""
    lines = (RUN_LINES + (NORMALISED_LINES if offset else "")).format(n=rows_, e=element, size=offset)
    text = case.text().replace(f"%i: {tensor(case.indices, element)}", f"%b: tensor<{element}>")
    return text.replace("%r = ", f"{lines}\n    %r = ", 1).replace("(%op, %i,", f"(%op, {'%y' if offset else '%x'},")


def check_run(
    rows_: int, size: int, bases: Any, *, rule: str, element: str = "i32", combiner: str = "assign", offset: int = 0
) -> None:
    """A run of rows at a runtime base: the rule that lowers it, and the reference's result under both policies."""
    case = rows(rows_, size, 2, index=element, combiner=combiner)
    text = run_text(case, rows_, element, offset)
    for oob in ("xla", "spec"):
        lowered = hl.lower(text, oob=oob, prefer=("while",) if rule == "while" else ())
        if rule == "while":  # no run: of the forms for any windows the loop is asked for
            assert hl.lower(text, oob=oob).records[0].subset != "Rows"
        assert lowered.records[0].rule == rule
        executable = Executable(lowered.text, "exact")
        for base in bases:
            with np.errstate(all="ignore"):
                base = np.asarray(base).astype(DTYPES[element])
                x = base + np.arange(rows_).astype(DTYPES[element])
                x = np.where(x < 0, x + np.asarray(offset, x.dtype), x) if offset else x
            rng = np.random.default_rng(0)
            operand, updates = some(rng, case.operand, "f32"), some(rng, case.updates, "f32")
            expected = scatter([operand], x[:, None], [updates], case.dims, case.combine, [np.dtype("f4")], oob=oob)
            found = first_difference(expected, executable.run([operand, base, updates]))
            assert found is None, f"base {base}, oob={oob}: {found}"


RULES_OF_RUNS = pytest.mark.parametrize(("combiner", "kind"), [("assign", "rows"), ("subtract", "updated_rows")])


@RULES_OF_RUNS
def test_trap_03_a_run_is_shifted_into_bounds(combiner, kind):
    """A run of rows at every base keeps just the rows inside, and no pad is as large as the operand."""
    check_run(4, 5, (*range(-6, 7), INT_MIN, INT_MAX), rule=f"shifted_{kind}", combiner=combiner)


@RULES_OF_RUNS
def test_trap_03_the_operand_is_not_padded(combiner, kind):
    """The rows outside are cut off by shifting the updates: nothing of the operand's size is made besides the write."""
    lowered = hl.lower(run_text(rows(4, 5000, 2, combiner=combiner), 4), oob="spec")
    assert lowered.records[0].rule == f"shifted_{kind}"
    assert ops_of_size(lowered.text, 5000) == ["stablehlo.dynamic_update_slice"]


@RULES_OF_RUNS
@pytest.mark.parametrize("size", [2, 3, 7])
def test_trap_04_a_run_longer_than_the_operand(combiner, kind, size):
    """One write of all rows drops them one by one, also where they are more than the operand has."""
    check_run(
        7, size, (*range(-9, 10), INT_MIN, INT_MIN + 6, INT_MAX - 6, INT_MAX), rule=f"shifted_{kind}", combiner=combiner
    )


@RULES_OF_RUNS
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("element", ["i32", "i64"])
def test_trap_09_a_run_next_to_the_end_of_its_type(combiner, kind, element, offset):
    """A base next to either end of its type, from which base + iota wraps around, writes what natively lies inside."""
    info = np.iinfo(DTYPES[element])
    ends = [info.min, info.min + 1, info.min + 3, info.max - 3, info.max - 1, info.max]
    rule = f"{'wrapped' if offset else 'shifted'}_{kind}"
    check_run(4, 5, ends, rule=rule, element=element, combiner=combiner, offset=offset)


AFFINE = """
module {
  func.func @main(%op: tensor<200xf32>, %base: tensor<i8>, %up: tensor<140xf32>) -> tensor<200xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<140xi8>
    %1 = stablehlo.broadcast_in_dim %base, dims = [] : (tensor<i8>) -> tensor<140xi8>
    %2 = stablehlo.add %0, %1 : tensor<140xi8>
    %i = stablehlo.reshape %2 : (tensor<140xi8>) -> tensor<140x1xi8>
    %r = "stablehlo.scatter"(%op, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        stablehlo.return %u : tensor<f32>
    }) : (tensor<200xf32>, tensor<140x1xi8>, tensor<140xf32>) -> tensor<200xf32>
    return %r : tensor<200xf32>
  }
}"""


def test_trap_41_affine_indices_that_wrap():
    """base + iota in i8 wraps around; what wrapped to a negative number is dropped, what wrapped back is written."""
    executable = Executable(hl.lower(AFFINE).text, "exact")
    updates = f32(np.arange(140) + 1)
    for base in (-128, -20, 0, 100, 127):
        expected = np.zeros(200, np.float32)
        for k in range(140):
            at = (base + k + 128) % 256 - 128
            if at >= 0:
                expected[at] = updates[k]
        [result] = executable.run([np.zeros(200, np.float32), np.asarray(base, np.int8), updates])
        assert result.tolist() == expected.tolist()


@RULES_OF_RUNS
@pytest.mark.parametrize(("rows_", "size", "offset"), [(3, 5, 5), (3, 5, 6), (7, 4, 4), (1, 4, 4)])
def test_trap_39_wrapped_runs(combiner, kind, rows_, size, offset):
    """A run whose negative rows are moved up one by one is written in two parts, in the order of its rows."""
    bases = range(-rows_ - size - 2, size + 2)
    rule = f"wrapped_{kind}"
    if rows_ == 1:  # no run: one window
        rule = "guarded_dynamic_update_slice" if combiner == "assign" else "guarded_updated_slice"
    check_run(rows_, size, bases, rule=rule, combiner=combiner, offset=offset)


@pytest.mark.parametrize(
    ("element", "rows_", "size", "rule"),
    [("i8", 200, 20, "while"), ("i8", 29, 100, "while"), ("i8", 28, 100, "shifted_rows"), ("ui8", 10, 100, "while")],
)
def test_trap_41_affine_wrap_around(element, rows_, size, rule):
    """base + iota in a narrow type is a run only where what wraps around cannot come back into the operand."""
    bases = [120, 127, 100, 99, 72, 0, 1] + ([-128, -1, -100] if element == "i8" else [255, 250])
    check_run(rows_, size, bases, rule=rule, element=element)


def test_trap_41_a_type_that_the_operand_is_longer_than():
    """All of ui8 lies inside of 300 rows, and a run at 250 still goes on at 0."""
    check_run(10, 300, [250, 0, 255], rule="while", element="ui8")
