// options: named=True
// One window at a constant place: tensor.insert_slice with static offsets, no arithmetic.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[R:.*]] = tensor.insert_slice %arg1 into %arg0[2, 1] [3, 2] [1, 1] : tensor<3x2xf32> into tensor<8x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @main(%operand: tensor<8x4xf32>, %updates: tensor<3x2xf32>) -> tensor<8x4xf32> {
  %start = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %r = "stablehlo.scatter"(%operand, %start, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<2xi32>, tensor<3x2xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
