// options: target=few_dims
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.dot_general
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<2x3x2x2x3xf32>) -> tensor<2x3x2x2x2xf32> {
  %r = stablehlo.dot_general %x, %x, batching_dims = [0, 1, 2] x [0, 1, 2], contracting_dims = [4] x [4] : (tensor<2x3x2x2x3xf32>, tensor<2x3x2x2x3xf32>) -> tensor<2x3x2x2x2xf32>
  return %r : tensor<2x3x2x2x2xf32>
}
