// options: oob=xla float_mode=reassociate prefer=one_hot_dot
// CHECK:      stablehlo.is_finite %{{.*}}
// CHECK:      stablehlo.concatenate
// CHECK:      stablehlo.compare EQ, %{{.*}} -> tensor<1x8x5xi1>
// CHECK:      stablehlo.dot_general %{{.*}}, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<1x8x5xf32>, tensor<1x5x12xf32>) -> tensor<1x8x12xf32>
// CHECK:      %[[SUM:.*]] = stablehlo.add %arg0,
// CHECK:      stablehlo.select %{{.*}}, %[[SUM]], %arg0
// CHECK-NOT:  stablehlo.while
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<5x1xi32>, %up: tensor<5x4xf32>)
    -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
