// A function with a large product and a loop, called twice.
func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = call @twice(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = call @twice(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}
func.func private @twice(%y: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %big = stablehlo.dot_general %y, %y, batching_dims = [] x [], contracting_dims = [] x []
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4x4xf32>
  %p:2 = stablehlo.while(%i = %zero, %v = %y) : tensor<i32>, tensor<4x4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %s = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %s : tensor<i32>, tensor<4x4xf32>
  }
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%big init: %f) applies stablehlo.add across dimensions = [2, 3]
    : (tensor<4x4x4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %z = stablehlo.add %r, %p#1 : tensor<4x4xf32>
  return %z : tensor<4x4xf32>
}
