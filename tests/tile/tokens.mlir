// The gradient of a product: what a loop over tokens adds up is large.
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x256xf32>) -> tensor<8x256xf32> {
  %l = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] :
    (tensor<64x8xf32>, tensor<8x256xf32>) -> tensor<64x256xf32>
  %e = stablehlo.exponential %l : tensor<64x256xf32>
  %d = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] :
    (tensor<64x8xf32>, tensor<64x256xf32>) -> tensor<8x256xf32>
  return %d : tensor<8x256xf32>
}
