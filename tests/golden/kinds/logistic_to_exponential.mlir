// options: target=no_logistic float_mode=reassociate
// CHECK:     stablehlo.negate
// CHECK:     stablehlo.exponential
// CHECK:     stablehlo.add
// CHECK:     stablehlo.divide
// CHECK-NOT: stablehlo.logistic
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.logistic %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
