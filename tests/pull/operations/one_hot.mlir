func.func public @main(%arg0: tensor<6x1xi32>, %arg1: tensor<6x2xf32>, %arg2: tensor<6x2xi8>) -> tensor<5x2xf32> {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<5x2xf32>
  %c = stablehlo.constant dense<2139095040> : tensor<i32>
  %0 = stablehlo.bitcast_convert %c : (tensor<i32>) -> tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
  %c_0 = stablehlo.constant dense<-8388608> : tensor<i32>
  %2 = stablehlo.bitcast_convert %c_0 : (tensor<i32>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<6x2xf32>
  %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<6x2xf32>
  %4 = stablehlo.convert %arg2 : (tensor<6x2xi8>) -> tensor<6x2xi32>
  %c_2 = stablehlo.constant dense<0> : tensor<6x2xi32>
  %5 = stablehlo.compare EQ, %4, %c_2, SIGNED : (tensor<6x2xi32>, tensor<6x2xi32>) -> tensor<6x2xi1>
  %6 = stablehlo.convert %arg2 : (tensor<6x2xi8>) -> tensor<6x2xi32>
  %c_3 = stablehlo.constant dense<1> : tensor<6x2xi32>
  %7 = stablehlo.compare EQ, %6, %c_3, SIGNED : (tensor<6x2xi32>, tensor<6x2xi32>) -> tensor<6x2xi1>
  %8 = stablehlo.select %5, %1, %arg1 : tensor<6x2xi1>, tensor<6x2xf32>
  %9 = stablehlo.select %7, %3, %8 : tensor<6x2xi1>, tensor<6x2xf32>
  %10 = stablehlo.convert %arg2 : (tensor<6x2xi8>) -> tensor<6x2xi32>
  %c_4 = stablehlo.constant dense<2> : tensor<6x2xi32>
  %11 = stablehlo.compare EQ, %10, %c_4, SIGNED : (tensor<6x2xi32>, tensor<6x2xi32>) -> tensor<6x2xi1>
  %12 = stablehlo.select %11, %cst_1, %9 : tensor<6x2xi1>, tensor<6x2xf32>
  %13 = stablehlo.reshape %12 : (tensor<6x2xf32>) -> tensor<6x1x2xf32>
  %14 = stablehlo.reshape %13 : (tensor<6x1x2xf32>) -> tensor<1x6x2xf32>
  %15 = stablehlo.is_finite %14 : (tensor<1x6x2xf32>) -> tensor<1x6x2xi1>
  %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<1x6x2xf32>
  %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<1x6x2xf32>
  %16 = stablehlo.select %15, %cst_6, %cst_5 : tensor<1x6x2xi1>, tensor<1x6x2xf32>
  %17 = stablehlo.select %15, %14, %cst_6 : tensor<1x6x2xi1>, tensor<1x6x2xf32>
  %18 = stablehlo.compare LT, %14, %cst_6, FLOAT : (tensor<1x6x2xf32>, tensor<1x6x2xf32>) -> tensor<1x6x2xi1>
  %19 = stablehlo.select %18, %cst_6, %16 : tensor<1x6x2xi1>, tensor<1x6x2xf32>
  %20 = stablehlo.compare GT, %14, %cst_6, FLOAT : (tensor<1x6x2xf32>, tensor<1x6x2xf32>) -> tensor<1x6x2xi1>
  %21 = stablehlo.select %20, %cst_6, %16 : tensor<1x6x2xi1>, tensor<1x6x2xf32>
  %22 = stablehlo.concatenate %17, %19, %21, dim = 2 : (tensor<1x6x2xf32>, tensor<1x6x2xf32>, tensor<1x6x2xf32>) -> tensor<1x6x6xf32>
  %23 = stablehlo.reshape %arg0 : (tensor<6x1xi32>) -> tensor<6xi32>
  %24 = stablehlo.reshape %23 : (tensor<6xi32>) -> tensor<1x6xi32>
  %c_7 = stablehlo.constant dense<-1> : tensor<1x6xi32>
  %25 = stablehlo.compare GT, %24, %c_7, SIGNED : (tensor<1x6xi32>, tensor<1x6xi32>) -> tensor<1x6xi1>
  %c_8 = stablehlo.constant dense<4> : tensor<1x6xi32>
  %26 = stablehlo.compare LE, %24, %c_8, SIGNED : (tensor<1x6xi32>, tensor<1x6xi32>) -> tensor<1x6xi1>
  %27 = stablehlo.and %25, %26 : tensor<1x6xi1>
  %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<1x6xi1>) -> tensor<1x6x1xi1>
  %29 = stablehlo.reshape %28 : (tensor<1x6x1xi1>) -> tensor<1x6xi1>
  %c_9 = stablehlo.constant dense<0> : tensor<1x6xi32>
  %30 = stablehlo.broadcast_in_dim %24, dims = [0, 1] : (tensor<1x6xi32>) -> tensor<1x6x1xi32>
  %31 = stablehlo.reshape %30 : (tensor<1x6x1xi32>) -> tensor<1x6xi32>
  %c_10 = stablehlo.constant dense<5> : tensor<1x6xi32>
  %32 = stablehlo.select %29, %31, %c_10 : tensor<1x6xi1>, tensor<1x6xi32>
  %33 = stablehlo.broadcast_in_dim %32, dims = [0, 2] : (tensor<1x6xi32>) -> tensor<1x5x6xi32>
  %34 = stablehlo.iota dim = 1 : tensor<1x5x6xi32>
  %35 = stablehlo.compare EQ, %33, %34, SIGNED : (tensor<1x5x6xi32>, tensor<1x5x6xi32>) -> tensor<1x5x6xi1>
  %c_11 = stablehlo.constant dense<0> : tensor<i32>
  %c_12 = stablehlo.constant dense<false> : tensor<i1>
  %36 = stablehlo.reduce(%35 init: %c_12) applies stablehlo.or across dimensions = [2] : (tensor<1x5x6xi1>, tensor<i1>) -> tensor<1x5xi1>
  %37 = stablehlo.convert %35 : (tensor<1x5x6xi1>) -> tensor<1x5x6xf32>
  %38 = stablehlo.dot_general %37, %22, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, HIGHEST] : (tensor<1x5x6xf32>, tensor<1x6x6xf32>) -> tensor<1x5x6xf32>
  %39 = stablehlo.slice %38 [0:1, 0:5, 0:2] : (tensor<1x5x6xf32>) -> tensor<1x5x2xf32>
  %40 = stablehlo.slice %38 [0:1, 0:5, 2:4] : (tensor<1x5x6xf32>) -> tensor<1x5x2xf32>
  %41 = stablehlo.slice %38 [0:1, 0:5, 4:6] : (tensor<1x5x6xf32>) -> tensor<1x5x2xf32>
  %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<1x5x2xf32>
  %42 = stablehlo.compare GT, %40, %cst_13, FLOAT : (tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> tensor<1x5x2xi1>
  %c_14 = stablehlo.constant dense<2139095040> : tensor<i32>
  %43 = stablehlo.bitcast_convert %c_14 : (tensor<i32>) -> tensor<f32>
  %44 = stablehlo.broadcast_in_dim %43, dims = [] : (tensor<f32>) -> tensor<1x5x2xf32>
  %45 = stablehlo.add %39, %44 : tensor<1x5x2xf32>
  %46 = stablehlo.select %42, %45, %39 : tensor<1x5x2xi1>, tensor<1x5x2xf32>
  %47 = stablehlo.compare GT, %41, %cst_13, FLOAT : (tensor<1x5x2xf32>, tensor<1x5x2xf32>) -> tensor<1x5x2xi1>
  %c_15 = stablehlo.constant dense<-8388608> : tensor<i32>
  %48 = stablehlo.bitcast_convert %c_15 : (tensor<i32>) -> tensor<f32>
  %49 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<1x5x2xf32>
  %50 = stablehlo.add %46, %49 : tensor<1x5x2xf32>
  %51 = stablehlo.select %47, %50, %46 : tensor<1x5x2xi1>, tensor<1x5x2xf32>
  %52 = stablehlo.reshape %51 : (tensor<1x5x2xf32>) -> tensor<5x2xf32>
  %53 = stablehlo.reshape %36 : (tensor<1x5xi1>) -> tensor<5xi1>
  %54 = stablehlo.broadcast_in_dim %53, dims = [0] : (tensor<5xi1>) -> tensor<5x2xi1>
  %55 = stablehlo.add %cst, %52 : tensor<5x2xf32>
  %56 = stablehlo.select %54, %55, %cst : tensor<5x2xi1>, tensor<5x2xf32>
  return %56 : tensor<5x2xf32>
}
