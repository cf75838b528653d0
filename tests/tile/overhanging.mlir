// Six windows whose places the data says, written into eight rows of four. The test fills in the words in capitals.
func.func public @main(%t: tensor<8x4xf32>, %i: tensor<6xCOMPONENTSxi32>, %x: UPDATES) -> tensor<8x4xf32> {
  %u = stablehlo.negate %x : UPDATES
  %s = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<NUMBERS, index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<6xCOMPONENTSxi32>, UPDATES) -> tensor<8x4xf32>
  %r = stablehlo.abs %s : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
