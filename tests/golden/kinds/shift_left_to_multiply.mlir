// options: target=no_shift_left
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
// CHECK:     stablehlo.multiply
// CHECK-NOT: stablehlo.shift_left
func.func public @main(%x: tensor<3xi8>, %y: tensor<3xi8>) -> tensor<3xi8> {
  %r = stablehlo.shift_left %x, %y : tensor<3xi8>
  return %r : tensor<3xi8>
}
