// Rows that the data picks, and two columns from where it says.
func.func public @main(%t: tensor<8x4xf32>, %i: tensor<6x1xi32>, %p: tensor<i32>)
    -> (tensor<6x4xf32>, tensor<8x2xf32>) {
  %n = stablehlo.negate %t : tensor<8x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %g = "stablehlo.gather"(%n, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
    : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
  %s = stablehlo.dynamic_slice %n, %zero, %p, sizes = [8, 2]
    : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
  return %g, %s : tensor<6x4xf32>, tensor<8x2xf32>
}
