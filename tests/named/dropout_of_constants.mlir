// A dropout that takes constants alone.
func.func public @main() -> tensor<6xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %number = stablehlo.constant dense<1.5> : tensor<f32>
  %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<6xf32>
  %numbers = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<6xf32>
  %same = stablehlo.multiply %ones, %numbers : tensor<6xf32>
  return %same : tensor<6xf32>
}
