func.func public @main(%a: tensor<3xf32>, %b: tensor<3xi32>, %c: tensor<3x2xi16>, %d: tensor<2xui64>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3x2xui16>, tensor<2x8xi8>, tensor<5x3xi8>, tensor<4xf32>, tensor<3x2xi32>, tensor<150xi32>, tensor<200xi8>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  %0 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3xi32>
  %1 = stablehlo.bitcast_convert %b : (tensor<3xi32>) -> tensor<3xf32>
  %2 = stablehlo.bitcast_convert %c : (tensor<3x2xi16>) -> tensor<3xi32>
  %3 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3x2xui16>
  %4 = stablehlo.bitcast_convert %d : (tensor<2xui64>) -> tensor<2x8xi8>
  %5 = stablehlo.iota dim = 0 : tensor<5x3xi8>
  %6 = stablehlo.iota dim = 0 : tensor<4xf32>
  %7 = stablehlo.constant dense<[[1, -2], [3, 2147483647], [5, -2147483648]]> : tensor<3x2xi32>
  %i = stablehlo.iota dim = 0 : tensor<150xi32>
  %8 = stablehlo.add %i, %i : tensor<150xi32>
  %j = stablehlo.iota dim = 0 : tensor<200xi8>
  %9 = stablehlo.reverse %1, dims = [0] : tensor<3xf32>
  %10 = stablehlo.compare LT, %1, %9, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %11 = stablehlo.compare GE, %1, %9, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %12 = stablehlo.compare EQ, %1, %9, TOTALORDER : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %j, %10, %11, %12 : tensor<3xi32>, tensor<3xf32>, tensor<3xi32>, tensor<3x2xui16>, tensor<2x8xi8>, tensor<5x3xi8>, tensor<4xf32>, tensor<3x2xi32>, tensor<150xi32>, tensor<200xi8>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}
