// options: target=few_dims
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.negate %0 : tensor<72xf32>
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<2x3x2x2x3xf32>) -> tensor<2x3x2x2x3xf32> {
  %r = stablehlo.negate %x : tensor<2x3x2x2x3xf32>
  return %r : tensor<2x3x2x2x3xf32>
}
