// options: target=no_pairs
// CHECK:      %[[EVEN:.*]] = stablehlo.slice %{{.*}} [0:1, 0:2, 0:1]
// CHECK-NEXT: %[[ODD:.*]] = stablehlo.slice %{{.*}} [0:1, 2:3, 0:1]
// CHECK:      %[[SWAP:.*]] = stablehlo.or
// CHECK-NEXT: stablehlo.select %[[SWAP]], %[[ODD]],
// CHECK:      stablehlo.concatenate
// CHECK:      %[[SORTED:.*]] = stablehlo.select
// CHECK:      stablehlo.bitcast_convert
// CHECK:      stablehlo.gather
// CHECK-NOT:  stablehlo.while
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<3xf32>, tensor<3xi32>) -> (tensor<3xf32>, tensor<3xi32>)
  return %s#0, %s#1 : tensor<3xf32>, tensor<3xi32>
}
