// options: target=no_control
// CHECK:      %[[C:.*]] = stablehlo.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[B:.*]] = stablehlo.broadcast_in_dim %[[C]], dims = []
// CHECK-NEXT: %[[M:.*]] = stablehlo.multiply %[[X:.*]], %[[B]] : tensor<3xf32>
// CHECK-NEXT: stablehlo.compare LT, %[[M]], %{{.*}} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xi1> {
  %r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %two = stablehlo.constant dense<2.0> : tensor<f32>
    %m = stablehlo.multiply %a, %two : tensor<f32>
    %c = stablehlo.compare LT, %m, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}
