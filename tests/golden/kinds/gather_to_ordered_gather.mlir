// options: target=no_forms
// CHECK:     stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1]
// CHECK:     stablehlo.transpose
func.func public @main(%x: tensor<5x4xf32>, %i: tensor<3x1xi32>) -> tensor<4x3xf32> {
  %r = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : (tensor<5x4xf32>, tensor<3x1xi32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
