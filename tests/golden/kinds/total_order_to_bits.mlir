// options: target=finite
// CHECK:      stablehlo.bitcast_convert
// CHECK:      stablehlo.xor
// CHECK:      stablehlo.compare LT, {{.*}} SIGNED
// CHECK-NOT:  TOTALORDER

func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %r = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}
