// options: target=few_dims
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.reshape
func.func public @main(%x: tensor<3x3xf32>) -> tensor<2x3x2x2x3xf32> {
  %r = stablehlo.broadcast_in_dim %x, dims = [1, 4] : (tensor<3x3xf32>) -> tensor<2x3x2x2x3xf32>
  return %r : tensor<2x3x2x2x3xf32>
}
