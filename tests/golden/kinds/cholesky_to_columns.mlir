// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        %[[COLUMN:.*]] = stablehlo.dynamic_slice %[[A:[^,]*]], %{{.*}}, %[[K:.*]], sizes = [3, 1]
// CHECK:        %[[ROOT:.*]] = stablehlo.sqrt
// CHECK:        stablehlo.divide
// CHECK:        %[[OUTER:.*]] = stablehlo.multiply
// CHECK-NEXT:   stablehlo.subtract %[[A]], %[[OUTER]]
// CHECK:        stablehlo.compare GT
// CHECK-NOT:  stablehlo.cholesky
func.func public @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %r = stablehlo.cholesky %x, lower = true : tensor<3x3xf32>
  return %r : tensor<3x3xf32>
}
