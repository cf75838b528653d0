"""The modules that commands, scripts and functions are tried on: a row or a number, at a place."""

from untyped_mlir import module

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
ROW = module(
    "%cache: 8x4xf32, %pos: 1xi32, %row: 4xf32",
    "%0 = scatter(%cache, %pos, %row) <window=[0], inserted=[0], to=[0]> {assign}; return %0",
)
POINT = module("%o: 8xi32, %i: 1xi32, %u: i32", "%r = scatter(%o, %i, %u) <inserted=[0], to=[0]> {assign}")
