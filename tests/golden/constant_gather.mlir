// options: oob=xla
// CHECK:      %[[TABLE:.*]] = stablehlo.constant dense<{{.*}}> : tensor<40x1xi32>
// CHECK:      %[[FOUND:.*]] = "stablehlo.gather"(%{{.*}}, %[[TABLE]])
// CHECK:      %[[HIT:.*]] = stablehlo.broadcast_in_dim
// CHECK:      stablehlo.select %[[HIT]], %[[FOUND]], %arg0 : tensor<40x4xi1>
// CHECK-NOT:  stablehlo.while
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<40x4xf32>, %i: tensor<4xi32>, %up: tensor<20x4xf32>)
    -> tensor<40x4xf32> {
  %j = stablehlo.constant dense<[[0], [7], [14], [21], [28], [35], [2], [9], [16], [23], [30], [37], [4], [11], [18], [25], [32], [39], [6], [13]]> : tensor<20x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<40x4xf32>, tensor<20x1xi32>, tensor<20x4xf32>) -> tensor<40x4xf32>
  return %r : tensor<40x4xf32>
}
