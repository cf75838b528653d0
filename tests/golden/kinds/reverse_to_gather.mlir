// options: target=no_reverse
// CHECK: %[[ROWS:.*]] = stablehlo.constant {{.*}} : tensor<500x1xi32>
// CHECK: stablehlo.gather"(%{{.*}}, %[[ROWS]])
func.func public @main(%x: tensor<500x4xf32>) -> tensor<500x4xf32> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<500x4xf32>
  return %r : tensor<500x4xf32>
}
