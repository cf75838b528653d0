// One row written into a cache that is computed, at a place that the data says.
func.func public @main(%cache: tensor<64x16xf32>, %pos: tensor<1xi32>, %row: tensor<1x16xf32>) -> tensor<64x16xf32> {
  %twice = stablehlo.add %cache, %cache : tensor<64x16xf32>
  %r = "stablehlo.scatter"(%twice, %pos, %row) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]>}> ({
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    stablehlo.return %new : tensor<f32>
  }) : (tensor<64x16xf32>, tensor<1xi32>, tensor<1x16xf32>) -> tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}
