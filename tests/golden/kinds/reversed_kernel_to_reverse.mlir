// options: target=no_forms float_mode=reassociate
// CHECK:     stablehlo.reverse
// CHECK:     stablehlo.convolution
// CHECK-NOT: reverse = \[true\]
func.func public @main(%x: tensor<2x3x4xf32>, %k: tensor<2x4x5xf32>) -> tensor<2x2x5xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x2x5xf32>
  return %r : tensor<2x2x5xf32>
}
