// options: target=no_control
// CHECK:      %[[A:.*]] = stablehlo.negate
// CHECK-NEXT: %[[B:.*]] = stablehlo.add
// CHECK-NEXT: %[[C:.*]] = stablehlo.abs
// CHECK-NEXT: %[[ONE:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT: %[[P:.*]] = stablehlo.compare EQ, %{{.*}}, %[[ONE]]
// CHECK-NEXT: %[[INNER:.*]] = stablehlo.select %[[P]], %[[B]], %[[C]]
// CHECK-NEXT: %[[ZERO:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT: %[[Q:.*]] = stablehlo.compare EQ, %{{.*}}, %[[ZERO]]
// CHECK-NEXT: stablehlo.select %[[Q]], %[[A]], %[[INNER]]
func.func public @main(%i: tensor<i32>, %x: tensor<f32>) -> tensor<f32> {
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.negate %x : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    %b = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }, {
    %c = stablehlo.abs %x : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>
}
