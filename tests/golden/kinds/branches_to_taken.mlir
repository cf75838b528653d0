// options: target=no_control
// CHECK-NOT: stablehlo.negate
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.case
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %i = stablehlo.constant dense<-1> : tensor<i32>
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.negate %x : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
    %b = stablehlo.add %x, %x : tensor<f32>
    stablehlo.return %b : tensor<f32>
  }) : (tensor<i32>) -> tensor<f32>
  return %r : tensor<f32>
}
