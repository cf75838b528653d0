// options: target=few_dims
// CHECK:     stablehlo.constant dense<2.000000e+00> : tensor<72xf32>
// CHECK:     stablehlo.reshape
func.func public @main() -> tensor<2x3x2x2x3xf32> {
  %r = stablehlo.constant dense<2.0> : tensor<2x3x2x2x3xf32>
  return %r : tensor<2x3x2x2x3xf32>
}
