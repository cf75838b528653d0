// options: target=no_gather
// CHECK: func.func public @main
// CHECK: stablehlo.broadcast_in_dim
// CHECK-SAME: tensor<3x0xf32>
func.func public @main(%x: tensor<8x4xf32>, %i: tensor<3x1xi32>) -> tensor<3x0xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 0>}>
    : (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x0xf32>
  return %r : tensor<3x0xf32>
}
