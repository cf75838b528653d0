// options: target=one_key
// CHECK:      %[[Y:.*]] = stablehlo.reshape %arg1
// CHECK:      %[[DOWN:.*]] = stablehlo.not %[[Y]]
// CHECK:      %[[S:.*]]:{{[0-9]+}} = "stablehlo.sort"(%[[DOWN]],
// CHECK:      is_stable = true
// CHECK:      stablehlo.compare LT
// CHECK:      "stablehlo.sort"(%[[S]]#1,
// CHECK:      stablehlo.compare LT
func.func public @main(%x: tensor<40xi32>, %y: tensor<40xi32>) -> (tensor<40xi32>, tensor<40xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %same = stablehlo.compare EQ, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %next = stablehlo.compare GT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %tied = stablehlo.and %same, %next : tensor<i1>
    %first = stablehlo.or %less, %tied : tensor<i1>
    stablehlo.return %first : tensor<i1>
  }) : (tensor<40xi32>, tensor<40xi32>) -> (tensor<40xi32>, tensor<40xi32>)
  return %s#0, %s#1 : tensor<40xi32>, tensor<40xi32>
}
