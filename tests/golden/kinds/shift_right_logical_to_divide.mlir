// options: target=no_shift_right_logical
// CHECK:     stablehlo.compare
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
// CHECK:     stablehlo.divide
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.shift_right_logical
func.func public @main(%x: tensor<3xui8>, %y: tensor<3xui8>) -> tensor<3xui8> {
  %r = stablehlo.shift_right_logical %x, %y : tensor<3xui8>
  return %r : tensor<3xui8>
}
