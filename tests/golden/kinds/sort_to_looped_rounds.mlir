// options: target=short_text
// CHECK:      stablehlo.while
// CHECK:      stablehlo.constant dense<2>
// CHECK:      applies stablehlo.maximum
// CHECK:      applies stablehlo.minimum
// CHECK:      stablehlo.dynamic_update_slice %{{.*}} : (tensor<1x2x1xi32>, tensor<1x1x1xi32>
// CHECK:      stablehlo.gather
// CHECK-NOT:  stablehlo.slice
func.func public @main(%x: tensor<6xf32>, %y: tensor<6xi32>) -> (tensor<2xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  %p = stablehlo.slice %s#1 [0:2] : (tensor<6xi32>) -> tensor<2xi32>
  return %p : tensor<2xi32>
}
