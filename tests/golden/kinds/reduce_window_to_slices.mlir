// options: target=no_reduce_window
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.maximum
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.maximum
// CHECK-NOT: stablehlo.reduce_window
func.func public @main(%x: tensor<4xf32>) -> tensor<2xf32> {
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<f32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
