// Rows of a table of int8 with scales: both are gathered, and only what is gathered is computed.
// CHECK:      %0 = "stablehlo.gather"(%arg0, %arg2)
// CHECK:      %1 = stablehlo.convert %0 : (tensor<4x16xi8>) -> tensor<4x16xf32>
// CHECK-NEXT: %2 = "stablehlo.gather"(%arg1, %arg2)
// CHECK:      %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<4xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: %4 = stablehlo.multiply %1, %3 : tensor<4x16xf32>
// CHECK-NEXT: return %4 : tensor<4x16xf32>
func.func public @main(%table: tensor<64x16xi8>, %scales: tensor<64xf32>, %ids: tensor<4x1xi32>) -> tensor<4x16xf32> {
  %a = stablehlo.convert %table : (tensor<64x16xi8>) -> tensor<64x16xf32>
  %b = stablehlo.broadcast_in_dim %scales, dims = [0] : (tensor<64xf32>) -> tensor<64x16xf32>
  %c = stablehlo.multiply %a, %b : tensor<64x16xf32>
  %rows = "stablehlo.gather"(%c, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
    : (tensor<64x16xf32>, tensor<4x1xi32>) -> tensor<4x16xf32>
  return %rows : tensor<4x16xf32>
}
