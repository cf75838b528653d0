// options: target=signed_only
// CHECK:      %[[X:.*]] = stablehlo.convert %{{.*}} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[Y:.*]] = stablehlo.convert %{{.*}} : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[X]], %[[Y]] : tensor<4xf32>
// CHECK-NEXT: stablehlo.convert %[[SUM]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: return
func.func public @main(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %r = stablehlo.add %x, %y : tensor<4xbf16>
  return %r : tensor<4xbf16>
}
