// options: target=no_sign
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.sign
func.func public @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %r = stablehlo.sign %x : tensor<3xi32>
  return %r : tensor<3xi32>
}
