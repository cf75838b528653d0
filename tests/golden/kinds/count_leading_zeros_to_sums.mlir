// options: target=no_count_leading_zeros
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.add
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.and
// CHECK-NOT: stablehlo.count_leading_zeros
func.func public @main(%x: tensor<3xui32>) -> tensor<3xui32> {
  %r = stablehlo.count_leading_zeros %x : tensor<3xui32>
  return %r : tensor<3xui32>
}
