// options: target=no_wide
// CHECK:      func.func public @main(%[[W:.*]]: tensor<3x2xui32>)
// CHECK-NEXT: %[[R:.*]] = stablehlo.add %[[W]], %[[W]]
// CHECK-NEXT: return %[[R]]
func.func public @main(%w: tensor<3x2xui32>) -> tensor<3x2xui32> {
  %n = stablehlo.bitcast_convert %w : (tensor<3x2xui32>) -> tensor<3xui64>
  %v = stablehlo.bitcast_convert %n : (tensor<3xui64>) -> tensor<3x2xui32>
  %r = stablehlo.add %v, %v : tensor<3x2xui32>
  return %r : tensor<3x2xui32>
}
