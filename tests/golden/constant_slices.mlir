// options: oob=xla
// CHECK:      %[[A:.*]] = stablehlo.slice %{{.*}} [2:4, 0:4]
// CHECK:      %[[B:.*]] = stablehlo.reverse %[[A]], dims = [0]
// CHECK:      %[[PART:.*]] = stablehlo.dynamic_update_slice %arg0, %[[B]],
// CHECK:      %[[C:.*]] = stablehlo.slice %{{.*}} [0:2, 0:4]
// CHECK:      stablehlo.dynamic_update_slice %[[PART]], %[[C]],
// CHECK-NOT:  stablehlo.compare
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<4xi32>, %up: tensor<5x4xf32>)
    -> tensor<8x4xf32> {
  %j = stablehlo.constant dense<[[6], [7], [2], [1], [-1]]> : tensor<5x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
