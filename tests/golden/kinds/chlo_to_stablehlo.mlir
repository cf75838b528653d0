// options: target=plain
// CHECK: stablehlo.multiply
// CHECK-NOT: chlo
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  return %r : tensor<4xf32>
}
