module {
  func.func public @main(%arg0: tensor<2x4x8xbf16>, %arg1: tensor<8xbf16>, %arg2: tensor<8xbf16>) -> (tensor<2x4x8xf32> {jax.result_info = "result[0]"}) {
    %cst = stablehlo.constant dense<1.001360e-05> : tensor<bf16>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<bf16>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.convert %arg0 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %1 = stablehlo.reduce(%0 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x4x1xf32>
    %5 = stablehlo.convert %4 : (tensor<2x4x1xf32>) -> tensor<2x4x1xbf16>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x4x1xbf16>
    %7 = stablehlo.multiply %5, %6 : tensor<2x4x1xbf16>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x4x1xbf16>) -> tensor<2x4x8xbf16>
    %9 = stablehlo.subtract %arg0, %8 : tensor<2x4x8xbf16>
    %10 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<2x4x8xbf16>
    %11 = stablehlo.power %9, %10 : tensor<2x4x8xbf16>
    %12 = stablehlo.convert %11 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %13 = stablehlo.reduce(%12 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x4x1xf32>
    %16 = stablehlo.divide %14, %15 : tensor<2x4x1xf32>
    %17 = stablehlo.convert %16 : (tensor<2x4x1xf32>) -> tensor<2x4x1xbf16>
    %18 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<2x4x1xbf16>
    %19 = stablehlo.multiply %5, %18 : tensor<2x4x1xbf16>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<2x4x1xbf16>) -> tensor<2x4x8xbf16>
    %21 = stablehlo.subtract %arg0, %20 : tensor<2x4x8xbf16>
    %22 = stablehlo.broadcast_in_dim %arg1, dims = [2] : (tensor<8xbf16>) -> tensor<1x1x8xbf16>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<1x1x8xbf16>) -> tensor<2x4x8xbf16>
    %24 = stablehlo.multiply %23, %21 : tensor<2x4x8xbf16>
    %25 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<2x4x1xbf16>
    %26 = stablehlo.add %17, %25 : tensor<2x4x1xbf16>
    %27 = stablehlo.convert %26 : (tensor<2x4x1xbf16>) -> tensor<2x4x1xf32>
    %28 = stablehlo.sqrt %27 : tensor<2x4x1xf32>
    %29 = stablehlo.convert %24 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
    %31 = stablehlo.divide %29, %30 : tensor<2x4x8xf32>
    %34 = stablehlo.convert %arg2 : (tensor<8xbf16>) -> tensor<8xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x4x8xf32>
    %37 = stablehlo.add %31, %36 : tensor<2x4x8xf32>
    return %37 : tensor<2x4x8xf32>
  }
}
