func.func public @main(%x: tensor<5x4x3xi8>, %i: tensor<2x2xi32>, %j: tensor<3x5x1xi8>, %k: tensor<4xui8>, %sel: tensor<2x3x4xf32>, %at: tensor<2x5xi32>, %un: tensor<3xui8>) -> (tensor<2x4x2xi8>, tensor<3x5x2xi8>, tensor<4x5x1x3xi8>, tensor<2x3x5xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>) {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [2, 0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4, 2>}> : (tensor<5x4x3xi8>, tensor<2x2xi32>) -> tensor<2x4x2xi8>
  %1 = "stablehlo.gather"(%x, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], operand_batching_dims = [0, 2], start_indices_batching_dims = [1, 0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 1>}> : (tensor<5x4x3xi8>, tensor<3x5x1xi8>) -> tensor<3x5x2xi8>
  %2 = "stablehlo.gather"(%x, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2, 3], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 5, 1, 3>}> : (tensor<5x4x3xi8>, tensor<4xui8>) -> tensor<4x5x1x3xi8>
  %sel0 = "stablehlo.torch_index_select"(%sel, %at) <{dim = 2 : i64, batch_dims = 1 : i64}> : (tensor<2x3x4xf32>, tensor<2x5xi32>) -> tensor<2x3x5xf32>
  %sel1 = "stablehlo.torch_index_select"(%sel, %un) <{dim = 1 : i64, batch_dims = 0 : i64}> : (tensor<2x3x4xf32>, tensor<3xui8>) -> tensor<2x3x4xf32>
  %none = stablehlo.constant dense<7> : tensor<i32>
  %sel2 = "stablehlo.torch_index_select"(%sel, %none) <{dim = 2 : i64, batch_dims = 0 : i64}> : (tensor<2x3x4xf32>, tensor<i32>) -> tensor<2x3xf32>
  return %0, %1, %2, %sel0, %sel1, %sel2 : tensor<2x4x2xi8>, tensor<3x5x2xi8>, tensor<4x5x1x3xi8>, tensor<2x3x5xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>
}
