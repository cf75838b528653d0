"""A loop's step is looked for through conversions of a type to itself, and through no other."""

import pytest

import hlo_lower as hl

COUNTED = """func.func public @main(%o: tensor<200xf32>, %u: tensor<f32>) -> tensor<200xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<200> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<{kind}>
  %w:2 = stablehlo.while(%i = %zero, %x = %o) : tensor<i32>, tensor<200xf32> cond {{
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>
    %y = "stablehlo.scatter"(%x, %at, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
      ^bb0(%c: tensor<f32>, %d: tensor<f32>): stablehlo.return %d : tensor<f32>
    }}) : (tensor<200xf32>, tensor<1xi32>, tensor<f32>) -> tensor<200xf32>
    %a = stablehlo.convert %i : (tensor<i32>) -> tensor<{kind}>
    %b = stablehlo.add %a, %one : tensor<{kind}>
    %next = stablehlo.convert %b : (tensor<{kind}>) -> tensor<i32>
    stablehlo.return %next, %y : tensor<i32>, tensor<200xf32>
  }}
  return %w#1 : tensor<200xf32>
}}"""


@pytest.mark.parametrize(("kind", "in_bounds"), [("i32", "always"), ("i8", "unknown")])
def test_a_counter_that_wraps_around_in_a_narrower_type_is_no_counter(kind, in_bounds):
    """Counted in i8, 127 is followed by -128, which is out of bounds; in i32 the loop counts from 0 to 199."""
    [record] = hl.classify(hl.read(COUNTED.format(kind=kind)))
    assert record.in_bounds == in_bounds
