// options: target=no_batch_norm_grad
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.add
// CHECK:     stablehlo.rsqrt
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.multiply
// CHECK-NOT: stablehlo.batch_norm_grad
func.func public @main(%x: tensor<4x3xf32>, %s: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>, %g: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %r:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
    : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>
}
