// options: target=short_text
// CHECK:      stablehlo.constant dense<[4, 2, 2, 1, 3, 1]>
// CHECK:      stablehlo.constant dense<[0, 0, 1, 0, 1, 1]>
// CHECK:      stablehlo.while
// CHECK:      stablehlo.constant dense<6>
// CHECK:      %[[BEFORE:.*]] = stablehlo.or
// CHECK:      %[[SWAP:.*]] = stablehlo.and %{{.*}}, %[[BEFORE]]
// CHECK:      stablehlo.select %[[SWAP]],
// CHECK:      stablehlo.gather
func.func public @main(%x: tensor<6xf32>, %y: tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %s#0, %s#1 : tensor<6xf32>, tensor<6xi32>
}
