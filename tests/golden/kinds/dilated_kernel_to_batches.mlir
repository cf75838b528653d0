// options: target=no_forms float_mode=reassociate
// CHECK:     stablehlo.pad
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.convolution
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK-NOT: rhs_dilate
func.func public @main(%x: tensor<2x7x4xf32>, %k: tensor<2x4x5xf32>) -> tensor<2x5x5xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x7x4xf32>, tensor<2x4x5xf32>) -> tensor<2x5x5xf32>
  return %r : tensor<2x5x5xf32>
}
