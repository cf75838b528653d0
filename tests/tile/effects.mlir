// Two ops with effects, of which the second does not need the first: the test fills in FIRST and SECOND.
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x96xf32>, %y: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %large = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x96xf32>) -> tensor<64x96xf32>
  %sums = stablehlo.reduce(%large init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  %first = FIRST
  %second = SECOND
  %all = stablehlo.broadcast_in_dim %second, dims = [0] : (tensor<64xf32>) -> tensor<64x96xf32>
  %product = stablehlo.multiply %large, %all : tensor<64x96xf32>
  %most = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x96xf32>, tensor<f32>) -> tensor<64xf32>
  return %first, %most : tensor<64xf32>, tensor<64xf32>
}
