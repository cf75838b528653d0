// options: oob=spec
// CHECK:      stablehlo.clamp
// CHECK:      stablehlo.clamp
// CHECK:      stablehlo.subtract
// CHECK:      stablehlo.pad %arg2,
// CHECK:      %[[MOVED:.*]] = stablehlo.dynamic_slice
// CHECK:      stablehlo.iota
// CHECK:      %[[OLD:.*]] = stablehlo.dynamic_slice %arg0,
// CHECK:      %[[NEW:.*]] = stablehlo.select %{{.*}}, %[[MOVED]], %[[OLD]] : tensor<3x2xi1>
// CHECK:      stablehlo.dynamic_update_slice %arg0, %[[NEW]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<2xi32>, %up: tensor<3x2xf32>)
    -> tensor<8x4xf32> {
  
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1],
    index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<2xi32>, tensor<3x2xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
