// options: target=no_sort
// CHECK:      func.func public @main(%[[X:.*]]: tensor<1xf32>, %[[Y:.*]]: tensor<1xi32>)
// CHECK-NEXT: return %[[X]], %[[Y]]
func.func public @main(%x: tensor<1xf32>, %y: tensor<1xi32>) -> (tensor<1xf32>, tensor<1xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<1xf32>, tensor<1xi32>) -> (tensor<1xf32>, tensor<1xi32>)
  return %s#0, %s#1 : tensor<1xf32>, tensor<1xi32>
}
