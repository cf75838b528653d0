// options: target=wide_top_k
// CHECK:     stablehlo.convert
// CHECK:     chlo.top_k
// CHECK:     stablehlo.convert
func.func public @main(%x: tensor<3x8xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi32>) {
  %v, %i = chlo.top_k(%x, k = 2) : tensor<3x8xbf16> -> (tensor<3x2xbf16>, tensor<3x2xi32>)
  return %v, %i : tensor<3x2xbf16>, tensor<3x2xi32>
}
