// options: target=few_dims float_mode=reassociate
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<2x3x2x2x3xf32>, %v: tensor<f32>) -> tensor<3x2x3xf32> {
  %r = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x2x2x3xf32>, tensor<f32>) -> tensor<3x2x3xf32>
  return %r : tensor<3x2x3xf32>
}
