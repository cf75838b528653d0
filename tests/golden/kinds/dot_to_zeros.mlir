// options: target=no_forms
// CHECK:     stablehlo.constant dense<0.000000e+00>
// CHECK-NOT: stablehlo.dot_general
func.func public @main(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
