// options: target=no_control
// CHECK:      func.func public @main(%[[N:.*]]: tensor<i32>, %[[X:.*]]: tensor<f32>)
// CHECK:      %[[L:.*]] = stablehlo.minimum
// CHECK:      %[[P0:.*]] = stablehlo.compare LT, %[[C0:.*]], %[[L]]
// CHECK-NEXT: %[[A:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK:      %[[P1:.*]] = stablehlo.compare LT, %[[C1:.*]], %[[L]]
// CHECK-NEXT: %[[B:.*]] = stablehlo.add %[[A]], %[[A]]
// CHECK-NEXT: %[[C2:.*]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK-NEXT: %[[I1:.*]] = stablehlo.select %[[P1]], %[[C2]], %[[C1]]
// CHECK-NEXT: %[[Y1:.*]] = stablehlo.select %[[P1]], %[[B]], %[[A]]
// CHECK-NEXT: %[[I0:.*]] = stablehlo.select %[[P0]], %[[I1]], %[[C0]]
// CHECK-NEXT: %[[Y0:.*]] = stablehlo.select %[[P0]], %[[Y1]], %[[X]]
// CHECK-NEXT: return %[[I0]], %[[Y0]]
func.func public @main(%n: tensor<i32>, %x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %limit = stablehlo.minimum %n, %two : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %y = %x, %end = %limit) : tensor<i32>, tensor<f32>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %sum = stablehlo.add %y, %y : tensor<f32>
    stablehlo.return %next, %sum, %end : tensor<i32>, tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<f32>
}
