// Products of products that are asked for at several places, some of them numbers, and within a loop.
func.func @main(%x: tensor<2x3xi32>, %w: tensor<3x3xi32>) -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<2xi32>, tensor<1x3xi32>, tensor<1x3xi32>) {
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x3xi32>) -> tensor<2x3xi32>
  %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x3xi32>) -> tensor<2x3xi32>
  %c = stablehlo.dot_general %b, %w, contracting_dims = [1] x [1] : (tensor<2x3xi32>, tensor<3x3xi32>) -> tensor<2x3xi32>
  %last = stablehlo.slice %c [1:2, 0:3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
  %first = stablehlo.slice %c [0:1, 0:3] : (tensor<2x3xi32>) -> tensor<1x3xi32>
  %d = stablehlo.subtract %c, %b : tensor<2x3xi32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %empty = stablehlo.constant dense<0> : tensor<2x3xi32>
  %r:2 = stablehlo.while(%t = %z, %tiles = %empty) : tensor<i32>, tensor<2x3xi32>
    cond {
      %go = stablehlo.compare LT, %t, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %c, %t, %z, sizes = [1, 3] : (tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> tensor<1x3xi32>
      %e = stablehlo.dot_general %row, %w, contracting_dims = [1] x [0] : (tensor<1x3xi32>, tensor<3x3xi32>) -> tensor<1x3xi32>
      %turned = stablehlo.reverse %e, dims = [1] : tensor<1x3xi32>
      %f = stablehlo.add %e, %turned : tensor<1x3xi32>
      %tiles2 = stablehlo.dynamic_update_slice %tiles, %f, %t, %z : (tensor<2x3xi32>, tensor<1x3xi32>, tensor<i32>, tensor<i32>) -> tensor<2x3xi32>
      %next = stablehlo.add %t, %one : tensor<i32>
      stablehlo.return %next, %tiles2 : tensor<i32>, tensor<2x3xi32>
    }
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %most = stablehlo.reduce(%d init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  return %d, %r#1, %most, %last, %first : tensor<2x3xi32>, tensor<2x3xi32>, tensor<2xi32>, tensor<1x3xi32>, tensor<1x3xi32>
}
