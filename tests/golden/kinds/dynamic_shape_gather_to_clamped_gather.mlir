// options: target=in_bounds
// CHECK: stablehlo.get_dimension_size
// CHECK: stablehlo.maximum
// CHECK: stablehlo.minimum
// CHECK: stablehlo.gather
func.func public @main(%x: tensor<?x4xf32>, %i: tensor<?x1xi32>) -> tensor<?x4xf32> {
  %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<?x4xf32>, tensor<?x1xi32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
