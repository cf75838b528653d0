// options: target=no_exponential_minus_one float_mode=reassociate
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.exponential
// CHECK:     stablehlo.subtract
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.exponential_minus_one
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.exponential_minus_one %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
