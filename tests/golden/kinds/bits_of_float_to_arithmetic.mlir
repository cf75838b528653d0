// options: target=no_bitcast_convert
// CHECK:      %[[X:.*]] = stablehlo.add
// CHECK:      %[[M:.*]] = stablehlo.abs %[[X]]
// CHECK:      stablehlo.compare {{ *}}GE, %[[M]]
// CHECK:      stablehlo.floor
// CHECK:      stablehlo.compare {{ *}}NE, %[[X]], %[[X]]
// CHECK:      stablehlo.select
// CHECK-NOT:  stablehlo.bitcast_convert
func.func public @main(%x: tensor<4xf32>) -> tensor<4xi32> {
  %s = stablehlo.add %x, %x : tensor<4xf32>
  %r = stablehlo.bitcast_convert %s : (tensor<4xf32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
