// options: target=no_forms
// CHECK-DAG:  %[[X:.*]] = stablehlo.convert %arg0 : (tensor<1x4x2xi8>) -> tensor<1x4x2xf32>
// CHECK-DAG:  %[[K:.*]] = stablehlo.convert %arg1 : (tensor<3x2x3xi8>) -> tensor<3x2x3xf32>
// CHECK:      %[[R:.*]] = stablehlo.convolution(%[[X]], %[[K]])
// CHECK-NEXT: stablehlo.convert %[[R]] : (tensor<1x2x3xf32>) -> tensor<1x2x3xi32>
func.func public @main(%x: tensor<1x4x2xi8>, %k: tensor<3x2x3xi8>) -> tensor<1x2x3xi32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x2xi8>, tensor<3x2x3xi8>) -> tensor<1x2x3xi32>
  return %r : tensor<1x2x3xi32>
}
