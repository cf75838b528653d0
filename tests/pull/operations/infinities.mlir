func.func public @main(%i: tensor<6x1xi32>, %u: tensor<6x2xf32>, %k: tensor<6x2xi8>) -> tensor<5x2xf32> {
  %x = stablehlo.constant dense<0.0> : tensor<5x2xf32>
  %up = stablehlo.constant dense<0x7F800000> : tensor<6x2xf32>
  %down = stablehlo.constant dense<0xFF800000> : tensor<6x2xf32>
  %no = stablehlo.constant dense<0> : tensor<6x2xi8>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<6x2xf32>
  %two = stablehlo.constant dense<2> : tensor<6x2xi8>
  %yes = stablehlo.constant dense<1> : tensor<6x2xi8>
  %p = stablehlo.compare EQ, %k, %no, SIGNED : (tensor<6x2xi8>, tensor<6x2xi8>) -> tensor<6x2xi1>
  %q = stablehlo.compare EQ, %k, %yes, SIGNED : (tensor<6x2xi8>, tensor<6x2xi8>) -> tensor<6x2xi1>
  %a = stablehlo.select %p, %up, %u : tensor<6x2xi1>, tensor<6x2xf32>
  %e = stablehlo.select %q, %down, %a : tensor<6x2xi1>, tensor<6x2xf32>
  %n = stablehlo.compare EQ, %k, %two, SIGNED : (tensor<6x2xi8>, tensor<6x2xi8>) -> tensor<6x2xi1>
  %b = stablehlo.select %n, %nan, %e : tensor<6x2xi1>, tensor<6x2xf32>
  %r = "stablehlo.scatter"(%x, %i, %b) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %s = stablehlo.add %c, %d : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<5x2xf32>, tensor<6x1xi32>, tensor<6x2xf32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}
