// options: oob=xla
// CHECK:      func.func public @main(%[[O:.*]]: tensor<?x4xf32>,
// CHECK-NEXT: return %[[O]]

func.func public @main(%o: tensor<?x4xf32>, %i: tensor<1xi32>, %up: tensor<4xf32>)
    -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %c : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
