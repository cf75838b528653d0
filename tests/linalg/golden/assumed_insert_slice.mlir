// options: named=True assume_in_bounds=True
// One window that is assumed to write inside: extract, index_cast and one insert_slice, without a test or a clamp.
// CHECK-LABEL: func.func @main
// CHECK: %[[START:.*]] = tensor.extract %arg2[%c0] : tensor<1xi64>
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[START]] : i64 to index
// CHECK-NEXT: %[[NEW:.*]] = tensor.insert_slice %arg1 into %arg0[0, 0, %[[AT]], 0] [1, 8, 1, 16] [1, 1, 1, 1]
// CHECK-NEXT: return %[[NEW]]
// CHECK-NOT: stablehlo
func.func @main(%arg0: tensor<1x8x64x16xf32>, %arg1: tensor<1x8x1x16xf32>, %arg2: tensor<1xi64>) -> tensor<1x8x64x16xf32> {
  %r = "stablehlo.scatter"(%arg0, %arg2, %arg1) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1, 3], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<1x8x64x16xf32>, tensor<1xi64>, tensor<1x8x1x16xf32>) -> tensor<1x8x64x16xf32>
  return %r : tensor<1x8x64x16xf32>
}
