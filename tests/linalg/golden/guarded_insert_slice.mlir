// options: named=True
// One window at a runtime start: one insert_slice where the start is inside, else what was there; all else is scalars.
// CHECK-LABEL: func.func @main
// CHECK: %[[START:.*]] = tensor.extract %arg1[%c0] : tensor<1xi32>
// CHECK-NEXT: %[[INSIDE:.*]] = arith.cmpi ule, %[[START]], %c7_i32 : i32
// CHECK-NEXT: scf.if %[[INSIDE]]
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[START]]
// CHECK-NEXT: %[[NEW:.*]] = tensor.insert_slice %arg2 into %arg0[%[[AT]], 0] [1, 4] [1, 1]
// CHECK-NEXT: scf.yield %[[NEW]]
// CHECK-NEXT: else
// CHECK-NEXT: scf.yield %arg0
// CHECK-NOT: stablehlo
func.func @main(%operand: tensor<8x4xf32>, %start: tensor<1xi32>, %updates: tensor<4xf32>) -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%operand, %start, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
