// options: target=no_forms
// CHECK:     stablehlo.transpose
// CHECK:     stablehlo.dot_general %arg0, %0, contracting_dims = [1, 2] x [0, 1]
func.func public @main(%x: tensor<2x3x4xi32>, %y: tensor<4x3x2xi32>) -> tensor<2x2xi32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1, 2] x [1, 0] : (tensor<2x3x4xi32>, tensor<4x3x2xi32>) -> tensor<2x2xi32>
  return %r : tensor<2x2xi32>
}
