// options: oob=xla
// CHECK:      stablehlo.clamp
// CHECK:      stablehlo.clamp
// CHECK:      stablehlo.subtract
// CHECK:      stablehlo.pad %{{.*}},
// CHECK:      %[[MOVED:.*]] = stablehlo.dynamic_slice
// CHECK:      stablehlo.iota
// CHECK:      %[[OLD:.*]] = stablehlo.dynamic_slice %arg0,
// CHECK:      %[[NEW:.*]] = stablehlo.select %{{.*}}, %[[MOVED]], %[[OLD]] : tensor<3x4xi1>
// CHECK:      stablehlo.dynamic_update_slice %arg0, %[[NEW]],
// CHECK-NOT:  stablehlo.dynamic_update_slice
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<i32>, %up: tensor<3x4xf32>)
    -> tensor<8x4xf32> {
  %base = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %iota = stablehlo.iota dim = 0 : tensor<3xi32>
  %x = stablehlo.add %base, %iota : tensor<3xi32>
  %j = stablehlo.reshape %x : (tensor<3xi32>) -> tensor<3x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
