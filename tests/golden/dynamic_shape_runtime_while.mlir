// options: oob=xla
// CHECK:      %[[N:.*]] = stablehlo.get_dimension_size %arg2, dim = 0
// CHECK:      stablehlo.while(%[[I:.*]] = %{{.*}}, %[[O:[^ ]*]] = %arg0,
// CHECK:      stablehlo.compare LT, %[[I]],
// CHECK:      %[[OLD:.*]] = stablehlo.real_dynamic_slice %[[O]],
// CHECK:      %[[SUM:.*]] = stablehlo.add %[[OLD]],
// CHECK:      %[[NEW:.*]] = stablehlo.select %{{.*}}, %[[SUM]], %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x?xf32>, %i: tensor<?x1xi32>, %up: tensor<?x?xf32>)
    -> tensor<?x?xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x?xf32>, tensor<?x1xi32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
