// options: target=no_reduce
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.add
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.add
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.reduce(
func.func public @main(%x: tensor<3xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
