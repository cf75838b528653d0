// A sort by a comparison that draws a random number.
func.func public @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %s = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %shape = stablehlo.constant dense<> : tensor<0xi64>
    %r = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
    %c = stablehlo.compare LT, %r, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %s : tensor<8x64xf32>
}
