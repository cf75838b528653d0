func.func public @main(%x: tensor<2x5xi32>, %f: tensor<5xf32>, %b: tensor<2x6xi1>, %z: tensor<i32>) -> (tensor<2x3xi32>, tensor<3x5xi32>, tensor<7xf32>, tensor<2x3xi1>) {
  %sum = stablehlo.constant dense<0> : tensor<i32>
  %lo = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %no = stablehlo.constant dense<false> : tensor<i1>
  %0 = "stablehlo.reduce_window"(%x, %sum) <{window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.add %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<2x5xi32>, tensor<i32>) -> tensor<2x3xi32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2, 2>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 3>, padding = dense<[[1, 0], [3, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.minimum %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<2x5xi32>, tensor<i32>) -> tensor<3x5xi32>
  %2 = "stablehlo.reduce_window"(%f, %lo) <{window_dimensions = array<i64: 3>, padding = dense<[[2, 2]]> : tensor<1x2xi64>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %e = stablehlo.maximum %c, %d : tensor<f32>
    stablehlo.return %e : tensor<f32>
  }) : (tensor<5xf32>, tensor<f32>) -> tensor<7xf32>
  %3 = "stablehlo.reduce_window"(%b, %no) <{window_dimensions = array<i64: 1, 4>}> ({
  ^bb0(%c: tensor<i1>, %d: tensor<i1>):
    %e = stablehlo.or %c, %d : tensor<i1>
    stablehlo.return %e : tensor<i1>
  }) : (tensor<2x6xi1>, tensor<i1>) -> tensor<2x3xi1>
  return %0, %1, %2, %3 : tensor<2x3xi32>, tensor<3x5xi32>, tensor<7xf32>, tensor<2x3xi1>
}
