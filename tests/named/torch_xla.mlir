// Small programs of scripts/recall/torch_programs.py as torch_xla exports them: bf16 is computed in f32 op by op, and a
// maximum begins at the lowest finite number.

func.func @silu_by_sigmoid(%arg0: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
  %0 = stablehlo.convert %arg0 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %1 = stablehlo.logistic %arg0 : tensor<2x4x8xbf16>
  %2 = stablehlo.convert %1 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<2x4x8xf32>
  %4 = stablehlo.convert %3 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  return %4 : tensor<2x4x8xbf16>
}

func.func @gelu_by_hand(%arg0: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<2x4x8xf32>
  %cst_0 = stablehlo.constant dense<1.41421354> : tensor<2x4x8xf32>
  %cst_1 = stablehlo.constant dense<5.000000e-01> : tensor<2x4x8xf32>
  %0 = stablehlo.convert %arg0 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %1 = stablehlo.multiply %0, %cst_1 : tensor<2x4x8xf32>
  %2 = stablehlo.convert %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %3 = stablehlo.convert %2 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %4 = stablehlo.divide %0, %cst_0 : tensor<2x4x8xf32>
  %5 = stablehlo.convert %4 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %6 = stablehlo.custom_call @mhlo.erf(%5) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16>
  %7 = stablehlo.convert %6 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %8 = stablehlo.add %7, %cst : tensor<2x4x8xf32>
  %9 = stablehlo.multiply %3, %8 : tensor<2x4x8xf32>
  %10 = stablehlo.convert %9 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  return %10 : tensor<2x4x8xbf16>
}

func.func @gelu_of_gpt2(%arg0: tensor<2x4x8xbf16>) -> tensor<2x4x8xbf16> {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<2x4x8xf32>
  %cst_0 = stablehlo.constant dense<0.797884583> : tensor<2x4x8xf32>
  %cst_1 = stablehlo.constant dense<4.471500e-02> : tensor<2x4x8xf32>
  %cst_2 = stablehlo.constant dense<3.000000e+00> : tensor<2x4x8xbf16>
  %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<2x4x8xf32>
  %0 = stablehlo.convert %arg0 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %1 = stablehlo.multiply %0, %cst_3 : tensor<2x4x8xf32>
  %2 = stablehlo.convert %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %3 = stablehlo.convert %2 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %4 = stablehlo.power %arg0, %cst_2 : tensor<2x4x8xbf16>
  %5 = stablehlo.convert %4 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %6 = stablehlo.multiply %5, %cst_1 : tensor<2x4x8xf32>
  %7 = stablehlo.convert %6 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %8 = stablehlo.add %arg0, %7 : tensor<2x4x8xbf16>
  %9 = stablehlo.convert %8 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %10 = stablehlo.multiply %9, %cst_0 : tensor<2x4x8xf32>
  %11 = stablehlo.convert %10 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  %12 = stablehlo.tanh %11 : tensor<2x4x8xbf16>
  %13 = stablehlo.convert %12 : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
  %14 = stablehlo.add %13, %cst : tensor<2x4x8xf32>
  %15 = stablehlo.multiply %3, %14 : tensor<2x4x8xf32>
  %16 = stablehlo.convert %15 : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
  return %16 : tensor<2x4x8xbf16>
}

func.func @swiglu(%arg0: tensor<16x8xbf16>, %arg1: tensor<2x4x8xbf16>, %arg2: tensor<16x8xbf16>) -> tensor<2x4x16xbf16> {
  %0 = stablehlo.reshape %arg1 : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %1 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<16x8xbf16>) -> tensor<8x16xbf16>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %3 = stablehlo.reshape %2 : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %4 = stablehlo.convert %3 : (tensor<2x4x16xbf16>) -> tensor<2x4x16xf32>
  %5 = stablehlo.logistic %4 : tensor<2x4x16xf32>
  %6 = stablehlo.multiply %4, %5 : tensor<2x4x16xf32>
  %7 = stablehlo.convert %6 : (tensor<2x4x16xf32>) -> tensor<2x4x16xbf16>
  %8 = stablehlo.convert %7 : (tensor<2x4x16xbf16>) -> tensor<2x4x16xf32>
  %9 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x8xbf16>) -> tensor<8x16xbf16>
  %10 = stablehlo.dot_general %0, %9, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %11 = stablehlo.reshape %10 : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %12 = stablehlo.convert %11 : (tensor<2x4x16xbf16>) -> tensor<2x4x16xf32>
  %13 = stablehlo.multiply %8, %12 : tensor<2x4x16xf32>
  %14 = stablehlo.convert %13 : (tensor<2x4x16xf32>) -> tensor<2x4x16xbf16>
  return %14 : tensor<2x4x16xbf16>
}

func.func @rope_of_halves(%arg0: tensor<1x1x6x8xbf16>, %arg1: tensor<2x4x6x8xbf16>, %arg2: tensor<1x1x6x8xbf16>) -> tensor<2x4x6x8xbf16> {
  %0 = stablehlo.convert %arg1 : (tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xf32>
  %1 = stablehlo.convert %arg2 : (tensor<1x1x6x8xbf16>) -> tensor<1x1x6x8xf32>
  %2 = stablehlo.reshape %1 : (tensor<1x1x6x8xf32>) -> tensor<6x8xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [2, 3] : (tensor<6x8xf32>) -> tensor<2x4x6x8xf32>
  %4 = stablehlo.multiply %0, %3 : tensor<2x4x6x8xf32>
  %5 = stablehlo.convert %4 : (tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xbf16>
  %6 = stablehlo.slice %arg1 [0:2, 0:4, 0:6, 4:8] : (tensor<2x4x6x8xbf16>) -> tensor<2x4x6x4xbf16>
  %7 = stablehlo.negate %6 : tensor<2x4x6x4xbf16>
  %8 = stablehlo.slice %arg1 [0:2, 0:4, 0:6, 0:4] : (tensor<2x4x6x8xbf16>) -> tensor<2x4x6x4xbf16>
  %9 = stablehlo.concatenate %7, %8, dim = 3 : (tensor<2x4x6x4xbf16>, tensor<2x4x6x4xbf16>) -> tensor<2x4x6x8xbf16>
  %10 = stablehlo.convert %9 : (tensor<2x4x6x8xbf16>) -> tensor<2x4x6x8xf32>
  %11 = stablehlo.convert %arg0 : (tensor<1x1x6x8xbf16>) -> tensor<1x1x6x8xf32>
  %12 = stablehlo.reshape %11 : (tensor<1x1x6x8xf32>) -> tensor<6x8xf32>
  %13 = stablehlo.broadcast_in_dim %12, dims = [2, 3] : (tensor<6x8xf32>) -> tensor<2x4x6x8xf32>
  %14 = stablehlo.multiply %10, %13 : tensor<2x4x6x8xf32>
  %15 = stablehlo.convert %14 : (tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xbf16>
  %16 = stablehlo.add %5, %15 : tensor<2x4x6x8xbf16>
  return %16 : tensor<2x4x6x8xbf16>
}

func.func @softmax_by_hand(%arg0: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %cst_0 = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = stablehlo.reduce(%arg0 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x8xf32>
  %2 = stablehlo.subtract %arg0, %1 : tensor<2x4x8xf32>
  %3 = stablehlo.exponential %2 : tensor<2x4x8xf32>
  %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x4x8xf32>, tensor<f32>) -> tensor<2x4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x8xf32>
  %6 = stablehlo.divide %3, %5 : tensor<2x4x8xf32>
  return %6 : tensor<2x4x8xf32>
}
