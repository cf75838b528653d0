module @jit_func attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x64x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<1xi32>) -> (tensor<4x16xf32> {jax.result_info = "result[0]"}, tensor<4x64x16xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<64> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<4x16xf32>) -> tensor<4x1x16xf32>
    %1 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.compare LT, %arg2, %1, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %3 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %4 = stablehlo.add %arg2, %3 : tensor<1xi32>
    %5 = stablehlo.select %2, %4, %arg2 : tensor<1xi1>, tensor<1xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %7 = "stablehlo.scatter"(%arg0, %6, %0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 2], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      stablehlo.return %arg4 : tensor<f32>
    }) : (tensor<4x64x16xf32>, tensor<1x1xi32>, tensor<4x1x16xf32>) -> tensor<4x64x16xf32>
    %8 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<4x16xf32>) -> tensor<4x1x16xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<4x1x16xf32>) -> tensor<4x64x16xf32>
    %10 = stablehlo.multiply %7, %9 : tensor<4x64x16xf32>
    %11 = stablehlo.reduce(%10 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<4x64x16xf32>, tensor<f32>) -> tensor<4x64xf32>
    %12 = stablehlo.iota dim = 0 : tensor<64xi32>
    %13 = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<1xi32>) -> tensor<64xi32>
    %14 = stablehlo.compare LE, %12, %13, SIGNED : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi1>
    %15 = stablehlo.not %14 : tensor<64xi1>
    %16 = call @_where(%15, %cst, %11) : (tensor<64xi1>, tensor<f32>, tensor<4x64xf32>) -> tensor<4x64xf32>
    %17 = stablehlo.reduce(%16 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<4x64xf32>, tensor<f32>) -> tensor<4xf32>
    %18 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %19 = stablehlo.maximum %18, %17 : tensor<4xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x64xf32>
    %22 = stablehlo.subtract %16, %21 : tensor<4x64xf32>
    %23 = stablehlo.exponential %22 : tensor<4x64xf32>
    %24 = stablehlo.reduce(%23 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x64xf32>, tensor<f32>) -> tensor<4xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<4xf32>) -> tensor<4x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x64xf32>
    %27 = stablehlo.divide %23, %26 : tensor<4x64xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<4x64xf32>) -> tensor<4x64x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<4x64x1xf32>) -> tensor<4x64x16xf32>
    %30 = stablehlo.multiply %29, %7 : tensor<4x64x16xf32>
    %31 = stablehlo.reduce(%30 init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<4x64x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    return %31, %7 : tensor<4x16xf32>, tensor<4x64x16xf32>
  }
  func.func private @_where(%arg0: tensor<64xi1>, %arg1: tensor<f32>, %arg2: tensor<4x64xf32>) -> tensor<4x64xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<64xi1>) -> tensor<4x64xi1>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<4x64xf32>
    %2 = stablehlo.select %0, %1, %arg2 : tensor<4x64xi1>, tensor<4x64xf32>
    return %2 : tensor<4x64xf32>
  }
}
