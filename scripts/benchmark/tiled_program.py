"""What the figures of docs/tiling.md are drawn of."""

PROGRAM = """\
func.func public @main(%x: tensor<2048x64xf32>, %w: tensor<64x32000xf32>)
    -> (tensor<2048xf32>, tensor<64x32000xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<2048x64xf32>, tensor<64x32000xf32>) -> tensor<2048x32000xf32>
  %likely = stablehlo.exponential %logits : tensor<2048x32000xf32>
  %sums = stablehlo.reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<2048x32000xf32>, tensor<f32>) -> tensor<2048xf32>
  %dw = stablehlo.dot_general %x, %likely, contracting_dims = [0] x [0]
    : (tensor<2048x64xf32>, tensor<2048x32000xf32>) -> tensor<64x32000xf32>
  return %sums, %dw : tensor<2048xf32>, tensor<64x32000xf32>
}
"""
"""The program of docs/tiling.md, section "Before and after"."""
