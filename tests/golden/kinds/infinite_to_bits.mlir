// options: target=finite
// CHECK:      stablehlo.constant dense<2139095040> : tensor<i32>
// CHECK:      stablehlo.bitcast_convert
// CHECK-NOT:  0x7F800000

func.func public @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %c = stablehlo.constant dense<0x7F800000> : tensor<3x4xf32>
  %r = stablehlo.minimum %x, %c : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
