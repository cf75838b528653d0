"""The modules that commands, scripts and functions are tried on: a row or a number, at a place."""

SCATTER = """\
module @decode {
  func.func public @main(%cache: tensor<8x4xf32>, %row: tensor<4xf32>, %position: tensor<i32>) -> tensor<8x4xf32> {
    %start = stablehlo.reshape %position : (tensor<i32>) -> tensor<1xi32>
    %new = "stablehlo.scatter"(%cache, %start, %row) <{
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0]>
    }> ({
    ^bb0(%current: tensor<f32>, %update: tensor<f32>):
      stablehlo.return %update : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
    return %new : tensor<8x4xf32>
  }
}
"""
ROW = """\
func.func public @main(%cache: tensor<8x4xf32>, %pos: tensor<1xi32>, %row: tensor<4xf32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.scatter"(%cache, %pos, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
POINT = """
func.func public @main(%o: tensor<8xi32>, %i: tensor<1xi32>, %u: tensor<i32>) -> tensor<8xi32> {
  %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<8xi32>, tensor<1xi32>, tensor<i32>) -> tensor<8xi32>
  return %r : tensor<8xi32>
}
"""
