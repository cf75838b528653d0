// options: target=no_f64
// CHECK:      %[[BELOW:.*]] = stablehlo.constant dense<0.099999994> : tensor<4xf32>
// CHECK-NEXT: stablehlo.compare GT, %arg0, %[[BELOW]], FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
// CHECK-NEXT: return
func.func public @main(%x: tensor<4xf32>) -> tensor<4xi1> {
  %c = stablehlo.constant dense<0.1> : tensor<4xf64>
  %w = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf64>
  %r = stablehlo.compare GT, %w, %c, FLOAT : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xi1>
  return %r : tensor<4xi1>
}
