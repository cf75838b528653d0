// options: target=no_shifts
// CHECK:     stablehlo.bitcast_convert
// CHECK:     stablehlo.add
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.convert
// CHECK-NOT: stablehlo.popcnt
func.func public @main(%x: tensor<3xui64>) -> tensor<3xui64> {
  %r = stablehlo.popcnt %x : tensor<3xui64>
  return %r : tensor<3xui64>
}
