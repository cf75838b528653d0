// options: target=litert
// CHECK:     stablehlo.pad
// CHECK:     stablehlo.convolution
// CHECK-NOT: pad =
func.func public @main(%x: tensor<1x3x3x3x1xf32>, %k: tensor<2x2x2x1x2xf32>) -> tensor<1x4x3x4x2xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f], window = {pad = [[1, 1], [2, -1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x3x3x1xf32>, tensor<2x2x2x1x2xf32>) -> tensor<1x4x3x4x2xf32>
  return %r : tensor<1x4x3x4x2xf32>
}
