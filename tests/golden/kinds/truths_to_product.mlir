// options: target=no_truths
// CHECK:      %[[X:.*]] = stablehlo.convert %{{.*}} : (tensor<2x3xi1>) -> tensor<2x3xf32>
// CHECK:      %[[Y:.*]] = stablehlo.convert %{{.*}} : (tensor<3x4xi1>) -> tensor<3x4xf32>
// CHECK:      %[[P:.*]] = stablehlo.dot_general %[[X]], %[[Y]]
// CHECK:      %[[Z:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<2x4xf32>
// CHECK:      %[[R:.*]] = stablehlo.compare NE, %[[P]], %[[Z]]
// CHECK:      return %[[R]]
func.func public @main(%x: tensor<2x3xi1>, %y: tensor<3x4xi1>) -> tensor<2x4xi1> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<2x3xi1>, tensor<3x4xi1>) -> tensor<2x4xi1>
  return %r : tensor<2x4xi1>
}
