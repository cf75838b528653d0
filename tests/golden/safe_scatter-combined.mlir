// options: oob=spec target=iree prefer=safe_scatter
// CHECK:      stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK:      stablehlo.select
// CHECK:      "stablehlo.scatter"
// CHECK:      stablehlo.add
// CHECK-NOT:  "stablehlo.gather"
// CHECK-NOT:  stablehlo.while

func.func public @main(%o: tensor<64x8xf32>, %k: tensor<3x1xi32>, %up: tensor<3x2x8xf32>) -> tensor<64x8xf32> {
  %r = "stablehlo.scatter"(%o, %k, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<64x8xf32>, tensor<3x1xi32>, tensor<3x2x8xf32>) -> tensor<64x8xf32>
  return %r : tensor<64x8xf32>
}
