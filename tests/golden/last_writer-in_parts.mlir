// options: oob=xla prefer=last_writer;mask_elements=30
// CHECK:      stablehlo.pad
// CHECK:      stablehlo.while
// CHECK:      stablehlo.dynamic_slice
// CHECK:      stablehlo.compare EQ, %{{.*}} -> tensor<1x8x3xi1>
// CHECK:      applies stablehlo.maximum across dimensions = [2]
// CHECK:      stablehlo.maximum %{{.*}} : tensor<1x8xi32>
// CHECK:      "stablehlo.gather"
// CHECK:      stablehlo.select %{{.*}}, %{{.*}}, %arg0
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<5x1xi32>, %up: tensor<5x4xf32>)
    -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
