// options: named=True
// A window into a tensor of dynamic size: its size is tensor.dim, and the write an insert_slice at a start that is
// clamped to what there is.
// CHECK-LABEL: func.func @main
// CHECK: %[[D:.*]] = tensor.dim %arg0, %c0
// CHECK: tensor.insert_slice %{{.*}} into %arg0[%{{.*}}, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
// CHECK-NOT: stablehlo
func.func @main(%operand: tensor<?x4xf32>, %start: tensor<1xi32>, %updates: tensor<1x4xf32>) -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%operand, %start, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<1xi32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
