// options: target=no_torch_index_select
// CHECK:     "stablehlo.gather"(%{{.*}}, %{{.*}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 4], collapsed_slice_dims = [2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 3>, slice_sizes = array<i64: 1, 4, 1, 6>}>
// CHECK-NOT: torch_index_select
func.func public @main(%x: tensor<2x4x5x6xf32>, %i: tensor<2x3x7xi32>) -> tensor<2x4x3x7x6xf32> {
  %r = "stablehlo.torch_index_select"(%x, %i) <{dim = 2 : i64, batch_dims = 1 : i64}> : (tensor<2x4x5x6xf32>, tensor<2x3x7xi32>) -> tensor<2x4x3x7x6xf32>
  return %r : tensor<2x4x3x7x6xf32>
}
