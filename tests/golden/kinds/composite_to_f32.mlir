// options: target=wide_top_k
// CHECK:     stablehlo.convert
// CHECK:     chlo.top_k
// CHECK:     stablehlo.convert
// CHECK-NOT: stablehlo.composite
func.func public @main(%x: tensor<3x8xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>) {
  %r:2 = stablehlo.composite "chlo.top_k" %x {composite_attributes = {k = 2 : i64}, decomposition = @top_k}
    : (tensor<3x8xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>)
  return %r#0, %r#1 : tensor<3x2xbf16>, tensor<3x2xi32>
}
func.func private @top_k(%x: tensor<3x8xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>) {
  %v, %i = chlo.top_k(%x, k = 2) : tensor<3x8xbf16> -> (tensor<3x2xbf16>, tensor<3x2xi32>)
  return %v, %i : tensor<3x2xbf16>, tensor<3x2xi32>
}
