// options: named=True
// What is reshaped beside dims of extent 1 stays as it is: a slice of one row, and a reshape of two long dims.
// CHECK-LABEL: func.func @main
// CHECK: %[[SLICE:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
// CHECK: tensor.insert_slice %[[SLICE]] into %arg0[{{.*}}] [4, 6] [1, 1]
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %arg2 {{\[\[}}0, 1, 2]] : tensor<1x4x6xf32> into tensor<24xf32>
// CHECK: tensor.expand_shape %[[ROW]] {{\[\[}}0, 1, 2]] output_shape [2, 12, 1] : tensor<24xf32> into tensor<2x12x1xf32>
// CHECK-NOT: stablehlo
func.func @main(%x: tensor<8x6xf32>, %u: tensor<24xf32>, %v: tensor<1x4x6xf32>, %i: tensor<i32>) -> (tensor<8x6xf32>, tensor<2x12x1xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %rows = stablehlo.reshape %u : (tensor<24xf32>) -> tensor<4x6xf32>
  %r = stablehlo.dynamic_update_slice %x, %rows, %i, %zero : (tensor<8x6xf32>, tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  %s = stablehlo.reshape %v : (tensor<1x4x6xf32>) -> tensor<2x12x1xf32>
  return %r, %s : tensor<8x6xf32>, tensor<2x12x1xf32>
}
