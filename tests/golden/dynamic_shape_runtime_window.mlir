// options: oob=xla
// CHECK:      %[[W:.*]] = stablehlo.get_dimension_size %arg2, dim = 0
// CHECK:      %[[SIZE:.*]] = stablehlo.get_dimension_size %[[O:.*]], dim = 0
// CHECK:      %[[LAST:.*]] = stablehlo.subtract %[[SIZE]],
// CHECK:      %[[PLACE:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %[[LAST]]
// CHECK:      %[[INSIDE:.*]] = stablehlo.compare EQ, %[[PLACE]], %[[START]]
// CHECK:      %[[OLD:.*]] = stablehlo.real_dynamic_slice %[[O]],
// CHECK:      %[[NEW:.*]] = stablehlo.select %[[INSIDE]], %{{.*}}, %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]], %[[PLACE]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x?xf32>, %i: tensor<1xi32>, %up: tensor<?xf32>)
    -> tensor<?x?xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<?x?xf32>, tensor<1xi32>, tensor<?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
