// options: target=no_rng_bit_generator
// CHECK:      stablehlo.iota
// CHECK:      stablehlo.shift_left
// CHECK:      stablehlo.shift_right_logical
// CHECK:      stablehlo.xor
// CHECK:      stablehlo.concatenate
// CHECK-NOT:  stablehlo.rng_bit_generator
func.func public @main(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>) {
  %after, %r = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY
    : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x4xui32>)
  return %after, %r : tensor<2xui64>, tensor<3x4xui32>
}
