func.func public @main(%x: tensor<3x4xi8>, %y: tensor<3x4xi8>, %z: tensor<5x6xi8>, %c: tensor<i1>, %i: tensor<i8>, %j: tensor<i8>) -> (tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>) {
  %old = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 2] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2xi8>
  %of_y = stablehlo.dynamic_slice %y, %i, %j, sizes = [1, 2] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2xi8>
  %more = stablehlo.add %old, %of_y : tensor<1x2xi8>
  %new = stablehlo.select %c, %more, %old : tensor<i1>, tensor<1x2xi8>
  %0 = stablehlo.dynamic_update_slice %x, %new, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %other = stablehlo.dynamic_slice %x, %j, %i, sizes = [1, 2] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2xi8>
  %1 = stablehlo.dynamic_update_slice %x, %other, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %turned = stablehlo.reverse %old, dims = [1] : tensor<1x2xi8>
  %2 = stablehlo.dynamic_update_slice %x, %turned, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %of_z = stablehlo.dynamic_slice %z, %i, %j, sizes = [1, 2] : (tensor<5x6xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2xi8>
  %3 = stablehlo.dynamic_update_slice %x, %of_z, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  %wide = stablehlo.dynamic_slice %x, %i, %j, sizes = [1, 3] : (tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<1x3xi8>
  %cut = stablehlo.slice %wide [0:1, 0:2] : (tensor<1x3xi8>) -> tensor<1x2xi8>
  %bits = stablehlo.bitcast_convert %cut : (tensor<1x2xi8>) -> tensor<1x2xi8>
  %4 = stablehlo.dynamic_update_slice %x, %bits, %i, %j : (tensor<3x4xi8>, tensor<1x2xi8>, tensor<i8>, tensor<i8>) -> tensor<3x4xi8>
  return %0, %1, %2, %3, %4 : tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>, tensor<3x4xi8>
}
