// options: target=no_sign
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.sign
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.sign %x : tensor<3xf32>
  return %r : tensor<3xf32>
}
