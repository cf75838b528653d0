// options: target=no_control
// CHECK:      func.func public @main(%[[X:.*]]: tensor<3xf32>)
// CHECK-NEXT: return %[[X]]
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
