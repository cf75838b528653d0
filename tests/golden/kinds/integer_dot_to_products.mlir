// options: target=no_dot_general
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.multiply
// CHECK:     stablehlo.add
// CHECK:     stablehlo.reshape
// CHECK-NOT: stablehlo.dot_general
func.func public @main(%x: tensor<2x2xi32>, %y: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x2xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %r : tensor<2x3xi32>
}
