// options: target=no_round_nearest_afz
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.floor
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.add
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.negate
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.round_nearest_afz
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.round_nearest_afz %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
