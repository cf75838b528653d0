// options: oob=xla
// A row of an operand that may have none: then nothing is read and nothing written.
// CHECK:      %[[D:.*]] = stablehlo.get_dimension_size %[[O:.*]], dim = 0
// CHECK:      %[[LIVE:.*]] = stablehlo.minimum %{{.*}}, %[[D]]
// CHECK:      %[[LAST:.*]] = stablehlo.subtract %{{.*}}, %[[LIVE]]
// CHECK:      %[[PLACE:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %[[LAST]]
// CHECK:      %[[INSIDE:.*]] = stablehlo.compare EQ, %[[PLACE]], %[[START]]
// CHECK:      %[[ROW:.*]] = stablehlo.real_dynamic_slice %{{.*}} : (tensor<1x4xf32>,
// CHECK:      %[[OLD:.*]] = stablehlo.real_dynamic_slice %[[O]],
// CHECK:      %[[NEW:.*]] = stablehlo.select %[[INSIDE]], %[[ROW]], %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]], %[[PLACE]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x4xf32>, %i: tensor<1xi32>, %up: tensor<4xf32>)
    -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
