// options: target=few_branches
// CHECK:     %[[OTHER:.*]] = "stablehlo.case"
// CHECK:     stablehlo.while
// CHECK:     %[[ONE:.*]] = "stablehlo.case"
// CHECK:     stablehlo.negate
// CHECK:     stablehlo.return %[[OTHER]]
// CHECK:     "stablehlo.case"
// CHECK:     stablehlo.abs
// CHECK:     stablehlo.return %[[ONE]]
func.func public @main(%i: tensor<i32>, %x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.abs %x : tensor<3xf32>
    stablehlo.return %a : tensor<3xf32>
  }, {
    %b = stablehlo.negate %x : tensor<3xf32>
    stablehlo.return %b : tensor<3xf32>
  }, {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %w:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<3xf32>
    cond {
      %p = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %k, %one : tensor<i32>
      %z = stablehlo.add %y, %y : tensor<3xf32>
      stablehlo.return %j, %z : tensor<i32>, tensor<3xf32>
    }
    stablehlo.return %w#1 : tensor<3xf32>
  }) : (tensor<i32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
