// options: target=no_forms float_mode=reassociate
// CHECK:      %[[X:.*]] = stablehlo.convert %arg0 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK:      %[[Y:.*]] = stablehlo.convert %arg1
// CHECK:      stablehlo.dot_general %[[X]], %[[Y]], contracting_dims = [1] x [0]
func.func public @main(%x: tensor<2x4xbf16>, %y: tensor<4x3xbf16>) -> tensor<2x3xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}
