// options: target=no_forms float_mode=reassociate
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.convolution
// CHECK-NOT: batch_group_count = 2
func.func public @main(%x: tensor<4x3x2xf32>, %k: tensor<2x2x6xf32>) -> tensor<2x2x6xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x3x2xf32>, tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  return %r : tensor<2x2x6xf32>
}
