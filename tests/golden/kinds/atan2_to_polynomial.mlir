// options: target=no_atan2 float_mode=reassociate
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.minimum
// CHECK:     stablehlo.maximum
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.or
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.atan2
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.atan2 %x, %y : tensor<3xf32>
  return %r : tensor<3xf32>
}
