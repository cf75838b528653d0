// options: target=few_dims
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<2x3x2x2x3xf32>) -> tensor<2x2x2x1x3xf32> {
  %r = stablehlo.slice %x [0:2, 1:3, 0:2, 1:2, 0:3] : (tensor<2x3x2x2x3xf32>) -> tensor<2x2x2x1x3xf32>
  return %r : tensor<2x2x2x1x3xf32>
}
