// options: oob=xla
// CHECK:      %[[SIZE:.*]] = stablehlo.get_dimension_size %[[O:.*]], dim = 0
// CHECK:      %[[LAST:.*]] = stablehlo.subtract %[[SIZE]],
// CHECK:      %[[PLACE:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %[[LAST]]
// CHECK:      %[[INSIDE:.*]] = stablehlo.compare EQ, %[[PLACE]], %[[START]]
// CHECK:      %[[OLD:.*]] = stablehlo.dynamic_slice %[[O]], %[[PLACE]],
// CHECK:      %[[NEW:.*]] = stablehlo.select %[[INSIDE]], %{{.*}}, %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]], %[[PLACE]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x4xf32>, %i: tensor<1xi32>, %up: tensor<1x4xf32>)
    -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<1xi32>, tensor<1x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
