// options: target=no_round_nearest_even
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.floor
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.floor
// CHECK:     stablehlo.add
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.round_nearest_even
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.round_nearest_even %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
