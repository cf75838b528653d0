// options: target=no_select_and_scatter
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.select
// CHECK:     stablehlo.pad
// CHECK:     stablehlo.add
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.select_and_scatter
func.func public @main(%x: tensor<4xf32>, %s: tensor<2xf32>) -> tensor<4xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
