// options: target=plain
// CHECK:     stablehlo.maximum
// CHECK:     stablehlo.exponential
// CHECK:     stablehlo.divide
// CHECK-NOT: stablehlo.composite
func.func public @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = stablehlo.composite "odml.softmax" %x {composite_attributes = {axis = -1 : i64}, decomposition = @softmax}
    : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
func.func private @softmax(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %n = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %d = stablehlo.subtract %x, %n : tensor<3x4xf32>
  %e = stablehlo.exponential %d : tensor<3x4xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x4xf32>
  %r = stablehlo.divide %e, %b : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
