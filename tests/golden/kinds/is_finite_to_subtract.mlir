// options: target=no_is_finite
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.compare
// CHECK-NOT: stablehlo.is_finite
func.func public @main(%x: tensor<3xf32>) -> tensor<3xi1> {
  %r = stablehlo.is_finite %x : (tensor<3xf32>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}
