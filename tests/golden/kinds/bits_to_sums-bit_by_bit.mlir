// options: target=no_bits
// CHECK:      %[[LOW:.*]] = stablehlo.select
// CHECK:      %[[WIDE:.*]] = stablehlo.broadcast_in_dim %[[LOW]], dims = [0] : (tensor<4xi32>) -> tensor<4x31xi32>
// CHECK-NEXT: %[[MOVED:.*]] = stablehlo.divide %[[WIDE]], %{{.*}} : tensor<4x31xi32>
// CHECK:      %[[BITS:.*]] = stablehlo.xor %{{.*}}, %{{.*}} : tensor<4x31xi1>
// CHECK:      stablehlo.reduce(%{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK:      %[[SIGN:.*]] = stablehlo.xor %{{.*}}, %{{.*}} : tensor<4xi1>
func.func public @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.xor %x, %y : tensor<4xi32>
  return %r : tensor<4xi32>
}
