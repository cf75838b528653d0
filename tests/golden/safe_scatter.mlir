// options: oob=xla target=iree prefer=safe_scatter
// CHECK:      stablehlo.reshape %arg0 : (tensor<2x64x8xf32>) -> tensor<128x8xf32>
// CHECK:      stablehlo.compare GT
// CHECK:      stablehlo.compare LE
// CHECK:      stablehlo.reduce(%{{.*}}) applies stablehlo.maximum
// CHECK:      stablehlo.dynamic_slice %{{.*}}, sizes = [1, 8]
// CHECK:      stablehlo.dynamic_slice %0, %{{.*}}, sizes = [1, 8]
// CHECK-NOT:  "stablehlo.gather"
// CHECK:      "stablehlo.scatter"
// CHECK-SAME: update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1
// CHECK:      (tensor<128x8xf32>, tensor<6x1xi32>, tensor<6x8xf32>) -> tensor<128x8xf32>
// CHECK:      stablehlo.dynamic_update_slice
// CHECK-NOT:  stablehlo.while

func.func public @main(%o: tensor<2x64x8xf32>, %k: tensor<2x3x1xi32>, %up: tensor<2x3x8xf32>)
    -> tensor<2x64x8xf32> {
  %r = "stablehlo.scatter"(%o, %k, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0],
    scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<2x64x8xf32>, tensor<2x3x1xi32>, tensor<2x3x8xf32>) -> tensor<2x64x8xf32>
  return %r : tensor<2x64x8xf32>
}
