func.func public @main(%a: tensor<3xi32>, %b: tensor<3x2xi16>, %c: tensor<2xui32>)
    -> (tensor<3x2xi16>, tensor<3xi32>, tensor<2x4xui8>, tensor<3x4xi8>) {
  %0 = stablehlo.bitcast_convert %a : (tensor<3xi32>) -> tensor<3x2xi16>
  %1 = stablehlo.bitcast_convert %b : (tensor<3x2xi16>) -> tensor<3xi32>
  %2 = stablehlo.bitcast_convert %c : (tensor<2xui32>) -> tensor<2x4xui8>
  %3 = stablehlo.bitcast_convert %a : (tensor<3xi32>) -> tensor<3x4xi8>
  return %0, %1, %2, %3 : tensor<3x2xi16>, tensor<3xi32>, tensor<2x4xui8>, tensor<3x4xi8>
}
