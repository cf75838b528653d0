// options: target=signed_starts
// CHECK:      %[[INSIDE:.*]] = stablehlo.minimum %arg1
// CHECK:      %[[STARTS:.*]] = stablehlo.convert %[[INSIDE]] : (tensor<5x1xui32>) -> tensor<5x1xi32>
// CHECK:      "stablehlo.gather"(%arg0, %[[STARTS]])
func.func public @main(%x: tensor<9xf32>, %i: tensor<5x1xui32>) -> tensor<5x1xf32> {
  %r = "stablehlo.gather"(%x, %i) <{slice_sizes = array<i64: 1>, dimension_numbers = #stablehlo.gather<
    offset_dims = [1], start_index_map = [0], index_vector_dim = 1>}> : (tensor<9xf32>, tensor<5x1xui32>) -> tensor<5x1xf32>
  return %r : tensor<5x1xf32>
}
