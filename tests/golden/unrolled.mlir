// options: oob=xla prefer=unrolled
// CHECK:      %[[OLD:.*]] = stablehlo.dynamic_slice %arg0,
// CHECK:      %[[NEW:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[OLD]] : tensor<i1>, tensor<1x1xf32>
// CHECK:      %[[PART:.*]] = stablehlo.dynamic_update_slice %arg0, %[[NEW]],
// CHECK:      stablehlo.dynamic_slice %[[PART]],
// CHECK:      stablehlo.select
// CHECK:      stablehlo.dynamic_update_slice %[[PART]],
// CHECK-NOT:  stablehlo.while
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<2x8xf32>, %i: tensor<2xi32>, %up: tensor<2xf32>)
    -> tensor<2x8xf32> {
  %b = stablehlo.iota dim = 0 : tensor<2x1xi32>
  %p = stablehlo.reshape %i : (tensor<2xi32>) -> tensor<2x1xi32>
  %j = stablehlo.concatenate %b, %p, dim = 1 : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x2xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<2x8xf32>, tensor<2x2xi32>, tensor<2xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}
