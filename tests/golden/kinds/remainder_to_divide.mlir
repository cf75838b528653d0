// options: target=no_remainder
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.remainder
func.func public @main(%x: tensor<3xi32>, %y: tensor<3xi32>) -> tensor<3xi32> {
  %r = stablehlo.remainder %x, %y : tensor<3xi32>
  return %r : tensor<3xi32>
}
