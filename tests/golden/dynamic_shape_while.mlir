// options: oob=xla
// CHECK:      stablehlo.while(%[[I:.*]] = %{{.*}}, %[[O:[^ ]*]] = %arg0,
// CHECK:      stablehlo.compare LT, %[[I]],
// CHECK:      %[[SIZE:.*]] = stablehlo.get_dimension_size %[[O]], dim = 0
// CHECK:      %[[LAST:.*]] = stablehlo.subtract %[[SIZE]],
// CHECK:      %[[PLACE:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %[[LAST]]
// CHECK:      %[[INSIDE:.*]] = stablehlo.compare EQ, %[[PLACE]], %[[START]]
// CHECK:      %[[OLD:.*]] = stablehlo.dynamic_slice %[[O]], %[[PLACE]],
// CHECK:      %[[SUM:.*]] = stablehlo.add %[[OLD]],
// CHECK:      %[[NEW:.*]] = stablehlo.select %[[INSIDE]], %[[SUM]], %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]], %[[PLACE]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x4xf32>, %i: tensor<3x1xi32>, %up: tensor<3x2x4xf32>)
    -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<3x1xi32>, tensor<3x2x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
