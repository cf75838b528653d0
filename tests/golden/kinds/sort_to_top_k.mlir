// options: target=own_top_k
// CHECK:      %[[Y:.*]] = stablehlo.reshape %arg1
// CHECK:      %{{.*}}, %[[LAST:.*]] = chlo.top_k(%{{.*}}, k = 40)
// CHECK:      %[[X:.*]] = "stablehlo.gather"(
// CHECK:      %{{.*}}, %[[FIRST:.*]] = chlo.top_k(%{{.*}}, k = 40)
// CHECK-NOT:  stablehlo.sort
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
