// options: target=no_remainder
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.and
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.remainder
func.func public @main(%x: tensor<3xf16>, %y: tensor<3xf16>) -> tensor<3xf16> {
  %r = stablehlo.remainder %x, %y : tensor<3xf16>
  return %r : tensor<3xf16>
}
