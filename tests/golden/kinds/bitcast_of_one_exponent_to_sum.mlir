// options: target=no_bitcast_convert
// CHECK:      %[[B:.*]] = stablehlo.or
// CHECK:      %[[M:.*]] = stablehlo.subtract %[[B]], %{{.*}} : tensor<4xui32>
// CHECK-NEXT: %[[I:.*]] = stablehlo.convert %[[M]] : (tensor<4xui32>) -> tensor<4xi32>
// CHECK-NEXT: %[[F:.*]] = stablehlo.convert %[[I]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK:      %[[U:.*]] = stablehlo.multiply %[[F]], %{{.*}} : tensor<4xf32>
// CHECK:      stablehlo.add %[[U]], %{{.*}} : tensor<4xf32>
func.func public @main(%x: tensor<4xui32>) -> tensor<4xf32> {
  %nine = stablehlo.constant dense<9> : tensor<4xui32>
  %one = stablehlo.constant dense<0x3F800000> : tensor<4xui32>
  %m = stablehlo.shift_right_logical %x, %nine : tensor<4xui32>
  %b = stablehlo.or %m, %one : tensor<4xui32>
  %r = stablehlo.bitcast_convert %b : (tensor<4xui32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
