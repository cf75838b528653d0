// options: target=no_sort
// CHECK:      %[[BITS:.*]] = stablehlo.bitcast_convert
// CHECK:      %[[KEY:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %[[BITS]] : tensor<1x6x1xi1>, tensor<1x6x1xi32>
// CHECK-NEXT: %[[AT:.*]] = stablehlo.iota dim = 1 : tensor<1x6x1xi32>
// CHECK:      %[[BEFORE:.*]] = stablehlo.or %{{.*}}, %{{.*}} : tensor<1x6x6x1xi1>
// CHECK:      %[[COUNTED:.*]] = stablehlo.convert %[[BEFORE]]
// CHECK-NEXT: %[[RANK:.*]] = stablehlo.reduce(%[[COUNTED]] init: %{{.*}}) applies stablehlo.add across dimensions = [2]
// CHECK:      %[[ORDER:.*]] = stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.maximum across dimensions = [2]
// CHECK:      stablehlo.gather
// CHECK:      stablehlo.gather
// CHECK-NOT:  stablehlo.sort
func.func public @main(%x: tensor<6xf32>, %y: tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %s#0, %s#1 : tensor<6xf32>, tensor<6xi32>
}
