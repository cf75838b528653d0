// options: target=any_start
// CHECK:      stablehlo.constant dense<0>
// CHECK:      "stablehlo.reduce_window"
// CHECK:      stablehlo.broadcast_in_dim %arg1
// CHECK-NEXT: stablehlo.add
func.func public @main(%x: tensor<8xi32>, %s: tensor<i32>) -> tensor<4xi32> {
  %r = "stablehlo.reduce_window"(%x, %s) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[1, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) : (tensor<8xi32>, tensor<i32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
