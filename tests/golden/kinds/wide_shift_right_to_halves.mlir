// options: target=no_shift_right_arithmetic
// CHECK:     stablehlo.bitcast_convert %arg0 : (tensor<3xi64>) -> tensor<3x2xi32>
// CHECK-NOT: stablehlo.shift_right_arithmetic
// CHECK:     stablehlo.concatenate
// CHECK:     stablehlo.bitcast_convert {{.*}} : (tensor<3x2xi32>) -> tensor<3xi64>
func.func public @main(%x: tensor<3xi64>) -> tensor<3xi64> {
  %d = stablehlo.constant dense<37> : tensor<3xi64>
  %r = stablehlo.shift_right_arithmetic %x, %d : tensor<3xi64>
  return %r : tensor<3xi64>
}
