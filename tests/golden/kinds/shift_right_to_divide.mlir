// options: target=no_shift_right_arithmetic
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.and
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.shift_right_arithmetic
func.func public @main(%x: tensor<3xi8>, %y: tensor<3xi8>) -> tensor<3xi8> {
  %r = stablehlo.shift_right_arithmetic %x, %y : tensor<3xi8>
  return %r : tensor<3xi8>
}
