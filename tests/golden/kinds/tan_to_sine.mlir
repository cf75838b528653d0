// options: target=no_tan float_mode=reassociate
// CHECK:     stablehlo.sine
// CHECK:     stablehlo.cosine
// CHECK:     stablehlo.divide
// CHECK-NOT: stablehlo.tan
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.tan %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
