// options: named=True
// Rows 1, 4, 7: one tensor.insert_slice with a stride of 3, nothing else; the composite that it was is gone.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = tensor.insert_slice %arg1 into %arg0[1, 0] [3, 4] [3, 1] : tensor<3x4xf32> into tensor<9x4xf32>
// CHECK-NEXT: return %[[R]]
// CHECK-NOT: func.func
func.func @main(%operand: tensor<9x4xf32>, %updates: tensor<3x4xf32>) -> tensor<9x4xf32> {
  %rows = stablehlo.constant dense<[[1], [4], [7]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%operand, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<9x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  return %r : tensor<9x4xf32>
}
