// options: target=no_set_dimension_size
// CHECK:     @main(%[[X:.*]]: tensor<4x5xf32>)
// CHECK-NOT: stablehlo.set_dimension_size
// CHECK:     return %[[X]]
func.func public @main(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %size = stablehlo.constant dense<5> : tensor<i32>
  %r = stablehlo.set_dimension_size %x, %size, dim = 1 : (tensor<4x5xf32>, tensor<i32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
