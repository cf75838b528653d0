// options: oob=xla

func.func public @main(%o: tensor<8x4x!quant.uniform<i8:f32, 2.0>>, %i: tensor<1xi32>, %up: tensor<4x!quant.uniform<i8:f32, 2.0>>)
    -> tensor<8x4x!quant.uniform<i8:f32, 2.0>> {
  
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 0>}> ({
  ^bb0(%c: tensor<!quant.uniform<i8:f32, 2.0>>, %u: tensor<!quant.uniform<i8:f32, 2.0>>):
    stablehlo.return %u : tensor<!quant.uniform<i8:f32, 2.0>>
  }) : (tensor<8x4x!quant.uniform<i8:f32, 2.0>>, tensor<1xi32>, tensor<4x!quant.uniform<i8:f32, 2.0>>) -> tensor<8x4x!quant.uniform<i8:f32, 2.0>>
  return %r : tensor<8x4x!quant.uniform<i8:f32, 2.0>>
}
