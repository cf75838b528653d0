// options: target=no_forms float_mode=reassociate
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.convolution
// CHECK:     stablehlo.convolution
// CHECK:     stablehlo.concatenate
// CHECK-NOT: feature_group_count = 2
func.func public @main(%x: tensor<1x3x3x3x4xf32>, %k: tensor<2x2x2x2x6xf32>) -> tensor<1x2x2x2x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, 2, f]x[0, 1, 2, i, o]->[b, 0, 1, 2, f], window = {stride = [1, 1, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x3x3x3x4xf32>, tensor<2x2x2x2x6xf32>) -> tensor<1x2x2x2x6xf32>
  return %r : tensor<1x2x2x2x6xf32>
}
