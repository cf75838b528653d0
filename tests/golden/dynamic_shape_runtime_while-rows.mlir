// options: oob=xla
// A number of rows, or an operand, that may be 0: one row is sliced where there is one, and none where there is none.
// CHECK:      stablehlo.while(%[[I:.*]] = %{{.*}}, %[[O:[^ ]*]] = %arg0,
// CHECK:      %[[N:.*]] = stablehlo.get_dimension_size %{{.*}}, dim = 0
// CHECK:      %[[D:.*]] = stablehlo.get_dimension_size %[[O]], dim = 0
// CHECK:      %[[ONE:.*]] = stablehlo.minimum %{{.*}}, %[[N]]
// CHECK:      %[[LIVE:.*]] = stablehlo.minimum %[[ONE]], %[[D]]
// CHECK:      stablehlo.real_dynamic_slice
// CHECK:      %[[LAST:.*]] = stablehlo.subtract %{{.*}}, %[[LIVE]]
// CHECK:      %[[PLACE:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %[[LAST]]
// CHECK:      %[[INSIDE:.*]] = stablehlo.compare EQ, %[[PLACE]], %[[START]]
// CHECK:      %[[ROW:.*]] = stablehlo.real_dynamic_slice
// CHECK:      %[[OLD:.*]] = stablehlo.real_dynamic_slice %[[O]],
// CHECK:      %[[SUM:.*]] = stablehlo.add %[[OLD]], %[[ROW]]
// CHECK:      %[[NEW:.*]] = stablehlo.select %[[INSIDE]], %[[SUM]], %[[OLD]]
// CHECK:      stablehlo.dynamic_update_slice %[[O]], %[[NEW]], %[[PLACE]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<?x4xf32>, %i: tensor<?x1xi32>, %up: tensor<?x4xf32>)
    -> tensor<?x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x4xf32>, tensor<?x1xi32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
