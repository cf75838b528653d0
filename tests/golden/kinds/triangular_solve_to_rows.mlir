// options: target=no_matrices float_mode=reassociate
// CHECK:      %[[T:.*]] = stablehlo.transpose
// CHECK:      stablehlo.while
// CHECK:        stablehlo.subtract %{{c.*}}, %[[NUMBER:.*]] : tensor<i32>
// CHECK:        stablehlo.divide
// CHECK:        stablehlo.compare LT
// CHECK-NOT:  stablehlo.triangular_solve
func.func public @main(%a: tensor<3x3xf32>, %b: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
}
