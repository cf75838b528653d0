// options: target=no_batch_norm_inference
// CHECK:     stablehlo.add
// CHECK:     stablehlo.rsqrt
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.batch_norm_inference
func.func public @main(%x: tensor<4x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> (tensor<4x3xf32>) {
  %r = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
    : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
