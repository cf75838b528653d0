// options: named=True
// A diagonal that is added to: read, added and written with the stride of the diagonal, over the flat operand.
// CHECK-LABEL: func.func @main(%arg0: tensor<4x4xi32>, %arg1: tensor<4xi32>) -> tensor<4x4xi32>
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %arg0
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[FLAT]][0] [4] [5]
// CHECK: %[[NEW:.*]] = linalg.map { arith.addi {{.*}}} ins(%arg1, %[[OLD]] :
// CHECK: %[[R:.*]] = tensor.insert_slice %[[NEW]] into %[[FLAT]][0] [4] [5]
// CHECK: tensor.expand_shape %[[R]]
// CHECK-NOT: ui32
func.func @main(%operand: tensor<4x4xui32>, %updates: tensor<4xui32>) -> tensor<4x4xui32> {
  %places = stablehlo.constant dense<[[0, 0], [1, 1], [2, 2], [3, 3]]> : tensor<4x2xi32>
  %r = "stablehlo.scatter"(%operand, %places, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
    %s = stablehlo.add %a, %b : tensor<ui32>
    stablehlo.return %s : tensor<ui32>
  }) : (tensor<4x4xui32>, tensor<4x2xi32>, tensor<4xui32>) -> tensor<4x4xui32>
  return %r : tensor<4x4xui32>
}
