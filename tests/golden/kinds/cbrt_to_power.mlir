// options: target=no_cbrt float_mode=reassociate
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.power
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.negate
// CHECK:     stablehlo.select
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.cbrt
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.cbrt %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
