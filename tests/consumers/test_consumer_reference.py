"""What a consumer is compared with: XLA's results on seeded or given arguments, in the types of the other version."""

from dataclasses import replace

import numpy as np
import pytest

from hlo_lower.base.errors import InputError
from hlo_lower.consumers.reference import reference_of
from hlo_lower.verify.run import CannotRunError

DECODE = """\
module @decode {{
  func.func public @main(%cache: tensor<8x4xf32>, %row: tensor<4xf32>, %position: tensor<{i}>) -> (tensor<8x4xf32>,
      tensor<{i}>) {{
    %start = stablehlo.reshape %position : (tensor<{i}>) -> tensor<1x{i}>
    %new = "stablehlo.scatter"(%cache, %start, %row) <{{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0]>
    }}> ({{
    ^bb0(%current: tensor<f32>, %update: tensor<f32>):
      stablehlo.return %update : tensor<f32>
    }}) : (tensor<8x4xf32>, tensor<1x{i}>, tensor<4xf32>) -> tensor<8x4xf32>
    return %new, %position : tensor<8x4xf32>, tensor<{i}>
  }}
}}
"""
WIDE, NARROW = DECODE.format(i="i64"), DECODE.format(i="i32")


def test_the_third_run_leaves_the_bounds():
    """Positions are in range, then at the edges, then anywhere; the names of the runs say so."""
    reference = reference_of(WIDE)
    assert [run.what for run in reference.runs] == ["in range", "first and last", "mixed"]
    assert all(0 <= int(run.arguments[2]) < 8 for run in reference.runs[:2])
    assert reference.rounding.exact == (True, True)


def test_the_same_seed_gives_the_same_arguments():
    """Another seed gives others."""
    one, same, other = (reference_of(WIDE, seed=seed).runs[0].arguments[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_given_arguments_are_run_once():
    """The user's arguments are taken as they are, and checked."""
    cache, row = np.zeros((8, 4), np.float32), np.ones(4, np.float32)
    (run,) = reference_of(WIDE, inputs=[cache, row, np.int64(8)]).runs
    np.testing.assert_array_equal(run.expected[0], cache)
    with pytest.raises(InputError, match="1 inputs for 3 arguments"):
        reference_of(WIDE, inputs=[cache])


def test_runs_for_narrower_integers_are_those_that_fit():
    """A version with i32 in the place of i64 takes the same values; a run whose values do not fit is left out."""
    cache, row = np.zeros((8, 4), np.float32), np.ones(4, np.float32)
    (run,) = reference_of(WIDE, inputs=[cache, row, np.int64(-3)]).for_signature_of(NARROW).runs
    assert (run.arguments[2].dtype, int(run.arguments[2]), run.expected[1].dtype) == (np.int32, -3, np.int32)
    with pytest.raises(CannotRunError, match="the values of no run fit"):
        reference_of(WIDE, inputs=[cache, row, np.int64(2**40)]).for_signature_of(NARROW)


def test_positions_out_of_bounds_stay_so_in_narrower_integers():
    """A seeded run whose values do not fit is run on the ends of the narrower type, and that is told."""
    reference = reference_of(WIDE, runs=90)
    beyond = [k for k, run in enumerate(reference.runs) if not -(2**31) <= int(run.arguments[2]) < 2**31]
    assert beyond
    adapted = reference.for_signature_of(NARROW)
    assert len(adapted.runs) == 90
    assert len(adapted.notes) == len(beyond)
    for k in beyond:
        position = int(adapted.runs[k].arguments[2])
        assert position in (-(2**31), 2**31 - 1)
        assert int(adapted.runs[k].expected[1]) == position
        np.testing.assert_array_equal(adapted.runs[k].expected[0], adapted.runs[k].arguments[0])


def test_a_run_that_is_left_out_is_told():
    """Results that no narrower type holds are not compared; the note says which run."""
    text = "func.func public @main(%a: tensor<{i}>) -> tensor<{i}> {{ %r = stablehlo.constant dense<{v}> : tensor<{i}>"
    text += "\n return %r : tensor<{i}> }}"
    reference = reference_of(text.format(i="i64", v=1 << 40), runs=1)
    fine = reference_of(text.format(i="i64", v=1), runs=1).runs[0]
    narrow = text.format(i="i32", v=1)
    adapted = replace(reference, runs=(*reference.runs, fine)).for_signature_of(narrow)
    assert len(adapted.runs) == 1
    assert adapted.notes == ("run 1 (in range): left out, its values do not fit the narrower integers",)


def test_another_signature_is_told():
    """Two versions of different shapes or counts of arguments are not compared."""
    other = "func.func public @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> { return %a : tensor<8x4xf32> }"
    with pytest.raises(CannotRunError, match="different signatures"):
        reference_of(WIDE).for_signature_of(other)
    with pytest.raises(CannotRunError, match="different signatures"):
        reference_of(WIDE).for_signature_of(NARROW.replace("8x4xf32", "9x4xf32"))


def test_a_version_in_another_dialect_has_the_same_runs():
    """What jaxlib does not parse may still be what the consumer reads."""
    reference = reference_of(WIDE)
    assert reference.for_signature_of("module { linalg.what }") is reference


def test_a_dynamic_shape_has_no_reference():
    """XLA runs static shapes; the reason says which one is not."""
    text = "func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }"
    with pytest.raises(CannotRunError, match="dynamic shape"):
        reference_of(text)


def test_a_module_that_does_not_parse_is_the_users():
    """The error says where."""
    with pytest.raises(InputError, match="before:1:"):
        reference_of("module {")
