// options: target=no_reduce_window
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
func.func public @main(%x: tensor<6xi32>) -> tensor<6xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[5, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 6>, window_strides = array<i64: 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
  return %r : tensor<6xi32>
}
