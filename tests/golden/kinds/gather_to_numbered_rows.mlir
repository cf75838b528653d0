// options: target=rows
// CHECK:      %[[TABLE:.*]] = stablehlo.reshape %arg0
// CHECK:      "stablehlo.gather"(%[[TABLE]],
// CHECK-SAME: collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1
// CHECK:      stablehlo.reshape
func.func public @main(%x: tensor<2x6x4xf32>, %i: tensor<2x5x1xi32>) -> tensor<2x5x3x4xf32> {
  %r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 1, 3, 4>, dimension_numbers = #stablehlo.gather<
    offset_dims = [2, 3], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1],
    index_vector_dim = 2>}> : (tensor<2x6x4xf32>, tensor<2x5x1xi32>) -> tensor<2x5x3x4xf32>
  return %r : tensor<2x5x3x4xf32>
}
