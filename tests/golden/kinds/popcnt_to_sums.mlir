// options: target=no_popcnt
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.and
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.and
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.add
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.and
// CHECK-NOT: stablehlo.popcnt
func.func public @main(%x: tensor<3xui32>) -> tensor<3xui32> {
  %r = stablehlo.popcnt %x : tensor<3xui32>
  return %r : tensor<3xui32>
}
