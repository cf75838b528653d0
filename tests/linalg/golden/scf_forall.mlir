// options: named=False parallel=True
// Seven rows by two, the last tile moved back: three tiles side by side in parallel, by places that step with the
// counter, and the fourth behind them. The sum of the loop behind it keeps that one in order, its places plain as well.
// CHECK-LABEL: func.func @main
// What the tiles fill begins empty, and each is computed in its place.
// CHECK: %[[E:.*]] = tensor.empty() : tensor<7x4xf32>
// CHECK: %[[R:.*]] = scf.forall (%[[I:.*]]) = (0) to (6) step (2) shared_outs(%[[O:.*]] = %[[E]]) -> (tensor<7x4xf32>) {
// CHECK: tensor.extract_slice %arg0[%[[I]], 0] [2, 4] [1, 1] : tensor<7x4xf32> to tensor<2x4xf32>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[O]][%[[I]], 0] [2, 4] [1, 1] : tensor<7x4xf32> to tensor<2x4xf32>
// CHECK: outs(%[[S]] : tensor<2x4xf32>)
// CHECK: scf.forall.in_parallel {
// CHECK: tensor.parallel_insert_slice %{{.*}} into %[[O]][%[[I]], 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<7x4xf32>
// CHECK: tensor.extract_slice %arg0[5, 0] [2, 4] [1, 1]
// CHECK: tensor.insert_slice %{{.*}} into %[[R]][5, 0] [2, 4] [1, 1]
// CHECK: scf.for %[[K:.*]] = %c0 to %c6 step %c2 iter_args(%{{.*}} = %{{.*}}) -> (tensor<4xf32>) {
// CHECK: tensor.extract_slice %{{.*}}[%[[K]], 0] [2, 4] [1, 1]
// CHECK-NOT: stablehlo
func.func @main(%x: tensor<7x4xf32>) -> (tensor<7x4xf32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<7x4xf32>
  %nil = stablehlo.constant dense<0.0> : tensor<4xf32>
  %f0 = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.while(%t = %zero, %o = %none) : tensor<i32>, tensor<7x4xf32>
  cond {
    %c = stablehlo.compare LT, %t, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %m = stablehlo.multiply %t, %two : tensor<i32>
    %i = stablehlo.minimum %m, %five : tensor<i32>
    %part = stablehlo.dynamic_slice %x, %i, %zero, sizes = [2, 4]
      : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %tile = stablehlo.exponential %part : tensor<2x4xf32>
    %new = stablehlo.dynamic_update_slice %o, %tile, %i, %zero
      : (tensor<7x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<7x4xf32>
    %next = stablehlo.add %t, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<7x4xf32>
  }
  %s:2 = stablehlo.while(%t = %zero, %sum = %nil) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %t, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %i = stablehlo.multiply %t, %two : tensor<i32>
    %part = stablehlo.dynamic_slice %r#1, %i, %zero, sizes = [2, 4]
      : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    %row = stablehlo.reduce(%part init: %f0) applies stablehlo.add across dimensions = [0]
      : (tensor<2x4xf32>, tensor<f32>) -> tensor<4xf32>
    %new = stablehlo.add %sum, %row : tensor<4xf32>
    %next = stablehlo.add %t, %one : tensor<i32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
  }
  return %r#1, %s#1 : tensor<7x4xf32>, tensor<4xf32>
}
