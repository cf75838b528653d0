func.func public @main(%x: tensor<4x6xbf16>, %h: tensor<4x6xf16>, %s: tensor<bf16>, %i: tensor<6xi32>, %j: tensor<6xi32>) -> (tensor<4xbf16>, tensor<6xf16>, tensor<4x6xbf16>, tensor<4x3xf16>) {
  %one = stablehlo.constant dense<1.0> : tensor<f16>
  %r0 = stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [1] : (tensor<4x6xbf16>, tensor<bf16>) -> tensor<4xbf16>
  %r1 = stablehlo.reduce(%h init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<4x6xf16>, tensor<f16>) -> tensor<6xf16>
  %r2 = "stablehlo.scatter"(%x, %i, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %t = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %t : tensor<bf16>
  }) : (tensor<4x6xbf16>, tensor<6xi32>, tensor<4x6xbf16>) -> tensor<4x6xbf16>
  %z = stablehlo.constant dense<-0.0> : tensor<f16>
  %zs = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f16>) -> tensor<4x3x6xf16>
  %two = stablehlo.constant dense<2> : tensor<6xi32>
  %n = stablehlo.iota dim = 0 : tensor<6xi32>
  %q = stablehlo.divide %n, %two : tensor<6xi32>
  %qs = stablehlo.broadcast_in_dim %q, dims = [2] : (tensor<6xi32>) -> tensor<4x3x6xi32>
  %rows = stablehlo.iota dim = 1 : tensor<4x3x6xi32>
  %own = stablehlo.compare EQ, %qs, %rows : (tensor<4x3x6xi32>, tensor<4x3x6xi32>) -> tensor<4x3x6xi1>
  %js = stablehlo.broadcast_in_dim %j, dims = [2] : (tensor<6xi32>) -> tensor<4x3x6xi32>
  %is = stablehlo.broadcast_in_dim %i, dims = [2] : (tensor<6xi32>) -> tensor<4x3x6xi32>
  %some = stablehlo.compare LT, %is, %js : (tensor<4x3x6xi32>, tensor<4x3x6xi32>) -> tensor<4x3x6xi1>
  %both = stablehlo.and %own, %some : tensor<4x3x6xi1>
  %hs = stablehlo.broadcast_in_dim %h, dims = [0, 2] : (tensor<4x6xf16>) -> tensor<4x3x6xf16>
  %m = stablehlo.select %both, %hs, %zs : tensor<4x3x6xi1>, tensor<4x3x6xf16>
  %r3 = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x3x6xf16>, tensor<f16>) -> tensor<4x3xf16>
  return %r0, %r1, %r2, %r3 : tensor<4xbf16>, tensor<6xf16>, tensor<4x6xbf16>, tensor<4x3xf16>
}
