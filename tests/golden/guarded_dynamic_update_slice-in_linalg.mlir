// options: target=linalg oob=xla
// CHECK:      %[[AT:.*]] = stablehlo.clamp %{{.*}}, %[[START:.*]], %{{.*}} : tensor<i32>
// CHECK:      %[[IN:.*]] = stablehlo.compare EQ, %[[START]], %[[AT]],
// CHECK:      stablehlo.if
// CHECK-SAME: %[[IN]]
// CHECK:      %[[NEW:.*]] = stablehlo.dynamic_update_slice %arg0, %{{.*}}, %[[AT]],
// CHECK-NEXT: stablehlo.return %[[NEW]]
// CHECK:      stablehlo.return %arg0
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<1xi32>, %up: tensor<4xf32>)
    -> tensor<8x4xf32> {
  
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
