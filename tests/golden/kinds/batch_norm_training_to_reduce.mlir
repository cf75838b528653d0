// options: target=no_batch_norm_training
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.batch_norm_training
func.func public @main(%x: tensor<4x3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
    : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}
