// options: named=True
// The write of a decode step whose row stands with its dims of extent 1 in another order: they move without a transpose.
// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %arg2 {{\[\[}}0, 1, 2], [3]] : tensor<1x1x32x4xf32> into tensor<32x4xf32>
// CHECK-NEXT: %[[START:.*]] = tensor.extract %arg1[%c0, %c0] : tensor<1x1xi64>
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi ule, %[[START]], %c1023_i64 : i64
// CHECK-NEXT: scf.if %[[INSIDE]]
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[START]]
// CHECK-NEXT: %[[NEW:.*]] = tensor.insert_slice %[[ROW]] into %arg0[0, 0, %[[AT]], 0] [1, 32, 1, 4] [1, 1, 1, 1]
// CHECK-NEXT: scf.yield %[[NEW]]
// CHECK-NOT: stablehlo
func.func @main(%cache: tensor<1x32x1024x4xf32>, %start: tensor<1x1xi64>, %row: tensor<1x1x32x4xf32>) -> tensor<1x32x1024x4xf32> {
  %t = stablehlo.transpose %row, dims = [0, 2, 1, 3] : (tensor<1x1x32x4xf32>) -> tensor<1x32x1x4xf32>
  %r = "stablehlo.scatter"(%cache, %start, %t) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1, 3], inserted_window_dims = [2], scatter_dims_to_operand_dims = [2],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<1x32x1024x4xf32>, tensor<1x1xi64>, tensor<1x32x1x4xf32>) -> tensor<1x32x1024x4xf32>
  return %r : tensor<1x32x1024x4xf32>
}
