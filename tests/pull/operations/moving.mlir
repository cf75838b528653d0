func.func public @main(%x: tensor<3x4xi8>, %v: tensor<i8>) -> (tensor<4x3xi8>, tensor<2x2xi8>, tensor<3x4xi8>, tensor<4x2x3xi8>, tensor<6x4xi8>, tensor<6x9xi8>, tensor<2x6xi8>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x4xi8>) -> tensor<4x3xi8>
  %1 = stablehlo.slice %x [0:3:2, 1:4:2] : (tensor<3x4xi8>) -> tensor<2x2xi8>
  %2 = stablehlo.reverse %x, dims = [1] : tensor<3x4xi8>
  %3 = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<3x4xi8>) -> tensor<4x2x3xi8>
  %4 = stablehlo.concatenate %x, %2, dim = 0 : (tensor<3x4xi8>, tensor<3x4xi8>) -> tensor<6x4xi8>
  %5 = stablehlo.pad %x, %v, low = [2, -1], high = [-1, 1], interior = [1, 2] : (tensor<3x4xi8>, tensor<i8>) -> tensor<6x10xi8>
  %6 = stablehlo.slice %5 [0:6, 0:9] : (tensor<6x10xi8>) -> tensor<6x9xi8>
  %7 = stablehlo.reshape %x : (tensor<3x4xi8>) -> tensor<2x6xi8>
  return %0, %1, %2, %3, %4, %6, %7 : tensor<4x3xi8>, tensor<2x2xi8>, tensor<3x4xi8>, tensor<4x2x3xi8>, tensor<6x4xi8>, tensor<6x9xi8>, tensor<2x6xi8>
}
