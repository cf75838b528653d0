// options: target=no_count_leading_zeros
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.or
// CHECK:     stablehlo.not
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
// CHECK-NOT: stablehlo.count_leading_zeros
func.func public @main(%x: tensor<3xui32>) -> tensor<3xui32> {
  %r = stablehlo.count_leading_zeros %x : tensor<3xui32>
  return %r : tensor<3xui32>
}
