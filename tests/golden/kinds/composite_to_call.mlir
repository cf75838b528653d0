// options: target=plain
// CHECK: call @double
// CHECK-NOT: stablehlo.composite
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.composite "my.double" %x {decomposition = @double} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func private @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.add %x, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
