func.func public @main(%x: tensor<3x4xi8>, %u: tensor<2x2xi8>, %i: tensor<i8>, %j: tensor<i8>, %y: tensor<3xi8>) -> (tensor<2x2xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>) {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 2] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<2x2xi8>
  %1 = stablehlo.dynamic_update_slice %x, %u, %i, %j : (tensor<3x4xi8>, tensor<2x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %old = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 1] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<1x1xi8>
  %new = stablehlo.add %old, %old : tensor<1x1xi8>
  %2 = stablehlo.dynamic_update_slice %x, %new, %i, %j : (tensor<3x4xi8>, tensor<1x1xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %of_y = stablehlo.dynamic_slice %y, %i, sizes = [1] : (tensor<3xi8>, tensor<i8>) -> tensor<1xi8>
  %spread = stablehlo.broadcast_in_dim %of_y, dims = [0] : (tensor<1xi8>) -> tensor<1x2xi8>
  %3 = stablehlo.dynamic_update_slice %x, %spread, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  return %0, %1, %2, %3 : tensor<2x2xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>
}
