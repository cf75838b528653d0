// options: target=no_forms
// CHECK:     stablehlo.reverse %arg0, dims = [0]
// CHECK:     stablehlo.reverse %0, dims = [2]
func.func public @main(%x: tensor<3x2x4xf32>) -> tensor<3x2x4xf32> {
  %r = stablehlo.reverse %x, dims = [0, 2] : tensor<3x2x4xf32>
  return %r : tensor<3x2x4xf32>
}
