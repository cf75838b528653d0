// options: target=no_control
// CHECK:      func.func public @main(%[[X:.*]]: tensor<3xf32>, %[[Y:.*]]: tensor<i1>)
// CHECK-NEXT: return %[[X]], %[[Y]]
func.func public @main(%x: tensor<3xf32>, %y: tensor<i1>) -> (tensor<3xf32>, tensor<i1>) {
  %r:2 = stablehlo.optimization_barrier %x, %y : tensor<3xf32>, tensor<i1>
  return %r#0, %r#1 : tensor<3xf32>, tensor<i1>
}
