// options: oob=xla
// CHECK:      %[[SPREAD:.*]] = stablehlo.pad %{{.*}}, %{{.*}}, low = [1, 0], high = [2, 0], interior = [1, 0]
// CHECK:      %[[HIT:.*]] = stablehlo.broadcast_in_dim
// CHECK:      stablehlo.select %[[HIT]], %[[SPREAD]], %arg0 : tensor<8x4xi1>
// CHECK-NOT:  stablehlo.compare
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<4xi32>, %up: tensor<3x4xf32>)
    -> tensor<8x4xf32> {
  %j = stablehlo.constant dense<[[1], [3], [5]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
