// options: target=no_reverse
// CHECK:      %[[LAST:.*]] = stablehlo.slice %{{.*}} [2:3, 0:4]
// CHECK-NEXT: %[[MIDDLE:.*]] = stablehlo.slice %{{.*}} [1:2, 0:4]
// CHECK-NEXT: %[[FIRST:.*]] = stablehlo.slice %{{.*}} [0:1, 0:4]
// CHECK-NEXT: stablehlo.concatenate %[[LAST]], %[[MIDDLE]], %[[FIRST]], dim = 0
func.func public @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
