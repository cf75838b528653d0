// options: target=few_dims
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<2x3x2x2x3xf32>) -> tensor<3x2x2x3x2xf32> {
  %r = stablehlo.transpose %x, dims = [4, 3, 2, 1, 0] : (tensor<2x3x2x2x3xf32>) -> tensor<3x2x2x3x2xf32>
  return %r : tensor<3x2x2x3x2xf32>
}
