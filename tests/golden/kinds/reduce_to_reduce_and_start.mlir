// options: target=no_forms
// CHECK:     stablehlo.constant dense<-2147483648>
// CHECK:     stablehlo.reduce
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.maximum
func.func public @main(%x: tensor<3x4xi32>, %s: tensor<i32>) -> tensor<3xi32> {
  %r = stablehlo.reduce(%x init: %s) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xi32>, tensor<i32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}
