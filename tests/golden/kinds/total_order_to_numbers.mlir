// options: target=as_numbers
// CHECK:      stablehlo.compare EQ
// CHECK:      stablehlo.compare LT
// CHECK:      stablehlo.divide
// CHECK-NOT:  TOTALORDER

func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %p = stablehlo.add %x, %y : tensor<4xf32>
  %q = stablehlo.multiply %x, %y : tensor<4xf32>
  %r = stablehlo.compare LT, %p, %q, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}
