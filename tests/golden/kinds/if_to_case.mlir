// options: target=no_if
// CHECK:      %[[I:.*]] = stablehlo.convert %{{.*}} : (tensor<i1>) -> tensor<i32>
// CHECK-NEXT: "stablehlo.case"(%[[I]]) ({
// CHECK-NEXT:   stablehlo.add
// CHECK:      }, {
// CHECK-NEXT:   stablehlo.negate
func.func public @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
  %r = "stablehlo.if"(%p) ({
    %a = stablehlo.negate %x : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    %b = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %r : tensor<f32>
}
