// options: target=no_clamp
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.maximum
// CHECK:     stablehlo.minimum
// CHECK-NOT: stablehlo.clamp
func.func public @main(%a: tensor<i32>, %x: tensor<3xi32>, %b: tensor<i32>) -> tensor<3xi32> {
  %r = stablehlo.clamp %a, %x, %b : (tensor<i32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}
