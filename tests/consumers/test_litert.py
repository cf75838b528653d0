"""LiteRT, where it is installed: right, wrong, refused by the converter and by the interpreter."""

import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.consumers import LITERT
from hlo_lower.consumers.consumer_judge import Judge
from hlo_lower.consumers.reference import reference_of

pytestmark = [
    pytest.mark.litert,
    pytest.mark.skipif(not LITERT.version(), reason="the extra litert is not installed"),
]

ADD = """func.func public @main(%a: tensor<3x2xf32>, %i: tensor<i32>, %b: tensor<2xi1>)
    -> (tensor<3x2xf32>, tensor<i32>, tensor<2xi1>) {{
  %r = stablehlo.{op} : tensor<3x2xf32>
  %n = stablehlo.not %b : tensor<2xi1>
  return %r, %i, %n : tensor<3x2xf32>, tensor<i32>, tensor<2xi1>
}}"""
SORT = """func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %r = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}"""
CUSTOM = """func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.custom_call @of_my_own(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""


def test_right_wrong_and_refused_by_either_part():
    """One process judges them all: its start takes longest."""
    reference = reference_of(ADD.format(op="add %a, %a"))
    sorts = reference_of(SORT)
    with Judge(LITERT) as judge:
        right = judge.judge(ADD.format(op="add %a, %a"), reference.runs, reference.rounding)
        wrong = judge.judge(ADD.format(op="multiply %a, %a"), reference.runs, reference.rounding)
        sort = judge.judge(SORT, sorts.runs, sorts.rounding)
        custom = judge.judge(CUSTOM, sorts.runs, sorts.rounding)
    assert right.result == "right"
    assert wrong.result == "wrong"
    assert (sort.result, sort.cause) == ("refused", "tflite.stablehlo_sort")
    assert (custom.result, custom.cause) == ("refused", "tflite.stablehlo_custom_call")


GATHER = """func.func public @main(%a: tensor<6x4x2xf32>, %i: tensor<5x2xi32>) -> tensor<5x2xf32> {
  %r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 2>}>
    : (tensor<6x4x2xf32>, tensor<5x2xi32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}"""
ROWS = """func.func public @main(%a: tensor<64x4xf32>, %i: tensor<40x1xi32>, %u: tensor<40x4xf32>)
    -> tensor<64x4xf32> {{
  %r = "stablehlo.scatter"(%a, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return {value} : tensor<f32>
    }}) : (tensor<64x4xf32>, tensor<40x1xi32>, tensor<40x4xf32>) -> tensor<64x4xf32>
  return %r : tensor<64x4xf32>
}}"""


def test_gathers_and_scatters_with_positions_out_of_bounds():
    """Converted, rows out of bounds are clamped by a gather, which ends the run as it was, and dropped by a scatter."""
    places = np.array([[0, 0], [5, 3], [6, 0], [2, -1], [-7, 9]], np.int32)
    gather = reference_of(GATHER, inputs=[np.arange(48, dtype=np.float32).reshape(6, 4, 2), places])
    with Judge(LITERT) as judge:
        assert judge.judge(GATHER, gather.runs, gather.rounding).cause == "tflite.gather_nd"
        lowered = hl.lower(GATHER, target="litert")
        assert judge.judge(lowered.text, gather.runs, gather.rounding).result == "right", lowered.notes
        for text in (ROWS.format(value="%y"), ROWS.format(value="%z")):
            rows, lowered = reference_of(text), hl.lower(text, target="litert")
            assert judge.judge(lowered.text, rows.runs, rows.rounding).result == "right", lowered.notes
