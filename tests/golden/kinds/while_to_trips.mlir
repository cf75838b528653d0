// options: target=no_control
// CHECK:      func.func public @main(%[[X:.*]]: tensor<f32>)
// CHECK:      %[[A:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK-NEXT: %[[B:.*]] = stablehlo.add %[[A]], %[[A]]
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: return %[[C]], %[[B]]
func.func public @main(%x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<f32>
  cond {
    %p = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %sum = stablehlo.add %y, %y : tensor<f32>
    stablehlo.return %next, %sum : tensor<i32>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<f32>
}
