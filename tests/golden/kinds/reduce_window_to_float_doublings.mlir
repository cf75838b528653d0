// options: target=no_reduce_window float_mode=reassociate
// CHECK:     stablehlo.pad
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.reduce_window
func.func public @main(%x: tensor<6xf32>) -> tensor<6xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[5, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 6>, window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6xf32>, tensor<f32>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}
