// options: target=no_bitcast_convert
// CHECK:      %[[E:.*]] = stablehlo.divide
// CHECK:      %[[M:.*]] = stablehlo.remainder
// CHECK:      stablehlo.convert %[[M]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK-NOT:  stablehlo.bitcast_convert
// CHECK:      stablehlo.negate
// CHECK-NEXT: %[[F:.*]] = stablehlo.select
// CHECK-NEXT: stablehlo.add %[[F]], %{{.*}} : tensor<4xf32>
func.func public @main(%b: tensor<4xi32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %f = stablehlo.bitcast_convert %b : (tensor<4xi32>) -> tensor<4xf32>
  %r = stablehlo.add %f, %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
