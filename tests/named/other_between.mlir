// A softmax; among its ops stands one that takes the maximum and is no part of it.
func.func public @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %other = stablehlo.sine %m : tensor<f32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4xf32>
  %e = stablehlo.exponential %d : tensor<4xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %r = stablehlo.divide %e, %sb : tensor<4xf32>
  return %r, %other : tensor<4xf32>, tensor<f32>
}
