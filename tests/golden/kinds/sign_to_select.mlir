// options: target=no_sign
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.select
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.sign
func.func public @main(%x: tensor<3xi32>) -> tensor<3xi32> {
  %r = stablehlo.sign %x : tensor<3xi32>
  return %r : tensor<3xi32>
}
