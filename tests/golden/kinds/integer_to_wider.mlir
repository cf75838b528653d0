// options: target=signed_only
// CHECK:      %[[X:.*]] = stablehlo.convert %{{.*}} : (tensor<4xi8>) -> tensor<4xi32>
// CHECK-NEXT: %[[Y:.*]] = stablehlo.convert %{{.*}} : (tensor<4xi8>) -> tensor<4xi32>
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[X]], %[[Y]] : tensor<4xi32>
// CHECK-NEXT: %[[MASK:.*]] = stablehlo.constant dense<255> : tensor<4xi32>
// CHECK-NEXT: %[[LOW:.*]] = stablehlo.and %[[SUM]], %[[MASK]] : tensor<4xi32>
// CHECK-NEXT: %[[HALF:.*]] = stablehlo.constant dense<128> : tensor<4xi32>
// CHECK-NEXT: %[[FLIPPED:.*]] = stablehlo.xor %[[LOW]], %[[HALF]] : tensor<4xi32>
// CHECK-NEXT: %[[SETTLED:.*]] = stablehlo.subtract %[[FLIPPED]], %[[HALF]] : tensor<4xi32>
// CHECK-NEXT: stablehlo.convert %[[SETTLED]] : (tensor<4xi32>) -> tensor<4xi8>
func.func public @main(%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8> {
  %r = stablehlo.add %x, %y : tensor<4xi8>
  return %r : tensor<4xi8>
}
