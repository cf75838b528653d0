// options: target=no_log_plus_one float_mode=reassociate
// CHECK:     stablehlo.add
// CHECK:     stablehlo.divide
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
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.add
// CHECK:     stablehlo.log
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.log_plus_one
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.log_plus_one %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
