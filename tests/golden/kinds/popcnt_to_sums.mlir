// options: target=no_popcnt
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.and
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.and
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.and
// CHECK:     stablehlo.add
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.add
// CHECK:     stablehlo.and
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.add
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.add
// CHECK:     stablehlo.and
// CHECK-NOT: stablehlo.popcnt
func.func public @main(%x: tensor<3xui32>) -> tensor<3xui32> {
  %r = stablehlo.popcnt %x : tensor<3xui32>
  return %r : tensor<3xui32>
}
