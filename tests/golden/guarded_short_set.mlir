// options: oob=xla prefer=short_operand=32
// CHECK:      %[[START:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<i32>) -> tensor<8xi32>
// CHECK:      %[[HIT:.*]] = stablehlo.compare EQ, %{{.*}}, %[[START]],
// CHECK:      %[[PLACES:.*]] = stablehlo.broadcast_in_dim %[[HIT]], dims = [0] : (tensor<8xi1>) -> tensor<8x4xi1>
// CHECK:      stablehlo.select %[[PLACES]], %{{.*}}, %arg0 : tensor<8x4xi1>, tensor<8x4xf32>
// CHECK-NOT:  stablehlo.dynamic
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<1xi32>, %up: tensor<4xf32>) -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
