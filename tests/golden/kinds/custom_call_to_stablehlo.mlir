// options: target=plain
// CHECK: stablehlo.multiply
// CHECK-NOT: custom_call
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.custom_call @mhlo.square(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
