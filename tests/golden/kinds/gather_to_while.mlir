// options: target=no_gather
// CHECK: func.func public @main
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice
// CHECK: stablehlo.dynamic_update_slice
func.func public @main(%x: tensor<100000x4xf32>, %i: tensor<3000x1xi32>) -> tensor<3000x4xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<100000x4xf32>, tensor<3000x1xi32>) -> tensor<3000x4xf32>
  return %r : tensor<3000x4xf32>
}
