func.func public @main(%x: tensor<3x4xi8>, %y: tensor<4x2xi8>, %b: tensor<3x4xi1>) -> (tensor<3xi8>, tensor<i8>, tensor<4xi1>, tensor<3x2xi32>, tensor<3x4xi8>, tensor<3x4xi8>) {
  %z = stablehlo.constant dense<0> : tensor<i8>
  %m = stablehlo.constant dense<-128> : tensor<i8>
  %f = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xi8>, tensor<i8>) -> tensor<3xi8>
  %1 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<3x4xi8>, tensor<i8>) -> tensor<i8>
  %2 = stablehlo.reduce(%b init: %f) applies stablehlo.or across dimensions = [0] : (tensor<3x4xi1>, tensor<i1>) -> tensor<4xi1>
  %3 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xi8>, tensor<4x2xi8>) -> tensor<3x2xi32>
  %n = stablehlo.iota dim = 1 : tensor<3x4xi8>
  %4:2 = "stablehlo.sort"(%x, %n) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%p: tensor<i8>, %q: tensor<i8>, %r: tensor<i8>, %s: tensor<i8>):
    %l = stablehlo.compare GT, %p, %q, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<3x4xi8>, tensor<3x4xi8>) -> (tensor<3x4xi8>, tensor<3x4xi8>)
  return %0, %1, %2, %3, %4#0, %4#1 : tensor<3xi8>, tensor<i8>, tensor<4xi1>, tensor<3x2xi32>, tensor<3x4xi8>, tensor<3x4xi8>
}
