// options: oob=xla prefer=select_per_batch
// CHECK:      %[[HIT:.*]] = stablehlo.compare EQ,
// CHECK:      %[[SPREAD:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [0] : (tensor<32xf32>)
// CHECK:      %[[SUM:.*]] = stablehlo.add %arg0, %[[SPREAD]]
// CHECK:      stablehlo.select %[[HIT]], %[[SUM]], %arg0
// CHECK-NOT:  stablehlo.dynamic_update_slice
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<32x8xf32>, %i: tensor<32xi32>, %up: tensor<32xf32>)
    -> tensor<32x8xf32> {
  %b = stablehlo.iota dim = 0 : tensor<32x1xi32>
  %p = stablehlo.reshape %i : (tensor<32xi32>) -> tensor<32x1xi32>
  %j = stablehlo.concatenate %b, %p, dim = 1 : (tensor<32x1xi32>, tensor<32x1xi32>) -> tensor<32x2xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<32x8xf32>, tensor<32x2xi32>, tensor<32xf32>) -> tensor<32x8xf32>
  return %r : tensor<32x8xf32>
}
