// options: named=True
// The structured loop: an index counts, the operand is carried, updates and indices are captured, and the slices of
// both take the counter without a clamp.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %c0 to %c40 step %c1 iter_args(%[[C:.*]] = %arg0) -> (tensor<9x4xf32>) {
// CHECK: tensor.extract_slice %{{.*}}[%[[I]], 0] [1, 4] [1, 1] : tensor<40x4xf32>
// CHECK: tensor.insert_slice %{{.*}} into %[[C]]
// CHECK: scf.yield
// CHECK: return %[[R]]
// CHECK-NOT: stablehlo
func.func @main(%operand: tensor<9x4xf32>, %rows: tensor<40x1xi32>, %updates: tensor<40x4xf32>) -> tensor<9x4xf32> {
  %r = "stablehlo.scatter"(%operand, %rows, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<9x4xf32>, tensor<40x1xi32>, tensor<40x4xf32>) -> tensor<9x4xf32>
  return %r : tensor<9x4xf32>
}
