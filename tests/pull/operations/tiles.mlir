// Loops over tiles: they add up products, sums and choices, write tiles, and write them over each other.
func.func @main(%x: tensor<6x8xf32>, %w: tensor<8x6xf32>, %i: tensor<24xi32>, %p: tensor<i1>)
    -> (tensor<6x6xf32>, tensor<6xf32>, tensor<i32>, tensor<24xi32>, tensor<4xi32>, tensor<6xf32>, tensor<1xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %empty = stablehlo.constant dense<0.0> : tensor<6x6xf32>
  %row = stablehlo.constant dense<0.0> : tensor<6xf32>
  %flat = stablehlo.constant dense<0> : tensor<24xi32>
  %last = stablehlo.constant dense<-5> : tensor<4xi32>
  %a:7 = stablehlo.while(%t = %zero, %products = %empty, %sums = %row, %count = %zero, %tiles = %flat, %over = %last, %some = %row) : tensor<i32>, tensor<6x6xf32>, tensor<6xf32>, tensor<i32>, tensor<24xi32>, tensor<4xi32>, tensor<6xf32>
    cond {
      %c = stablehlo.compare LT, %t, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %k = stablehlo.multiply %t, %two : tensor<i32>
      %m = stablehlo.multiply %t, %six : tensor<i32>
      %left = stablehlo.dynamic_slice %x, %zero, %k, sizes = [6, 2] : (tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<6x2xf32>
      %right = stablehlo.dynamic_slice %w, %k, %zero, sizes = [2, 6] : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x6xf32>
      %product = stablehlo.dot_general %left, %right, contracting_dims = [1] x [0] : (tensor<6x2xf32>, tensor<2x6xf32>) -> tensor<6x6xf32>
      %products2 = stablehlo.add %products, %product : tensor<6x6xf32>
      %sum = stablehlo.reduce(%left init: %none) applies stablehlo.add across dimensions = [1] : (tensor<6x2xf32>, tensor<f32>) -> tensor<6xf32>
      %more = stablehlo.add %sum, %row : tensor<6xf32>
      %sums1 = stablehlo.add %sums, %more : tensor<6xf32>
      %line = stablehlo.dynamic_slice %x, %t, %zero, sizes = [1, 6] : (tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x6xf32>
      %own = stablehlo.reshape %line : (tensor<1x6xf32>) -> tensor<6xf32>
      %sums2 = stablehlo.add %own, %sums1 : tensor<6xf32>
      %tile = stablehlo.dynamic_slice %i, %m, sizes = [6] : (tensor<24xi32>, tensor<i32>) -> tensor<6xi32>
      %sixth = stablehlo.reduce(%tile init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6xi32>, tensor<i32>) -> tensor<i32>
      %count2 = stablehlo.add %count, %sixth : tensor<i32>
      %number = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<i32>) -> tensor<6xi32>
      %negated = stablehlo.subtract %number, %tile : tensor<6xi32>
      %tiles2 = stablehlo.dynamic_update_slice %tiles, %negated, %m : (tensor<24xi32>, tensor<6xi32>, tensor<i32>) -> tensor<24xi32>
      %pair = stablehlo.dynamic_slice %tile, %zero, sizes = [2] : (tensor<6xi32>, tensor<i32>) -> tensor<2xi32>
      %over2 = stablehlo.dynamic_update_slice %over, %pair, %t : (tensor<4xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
      %is = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<6xi1>
      %early = stablehlo.compare LT, %t, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %soon = stablehlo.broadcast_in_dim %early, dims = [] : (tensor<i1>) -> tensor<6xi1>
      %which = stablehlo.select %soon, %sum, %own : tensor<6xi1>, tensor<6xf32>
      %added = stablehlo.add %some, %which : tensor<6xf32>
      %some2 = stablehlo.select %is, %added, %some : tensor<6xi1>, tensor<6xf32>
      %next = stablehlo.add %t, %one : tensor<i32>
      stablehlo.return %next, %products2, %sums2, %count2, %tiles2, %over2, %some2 : tensor<i32>, tensor<6x6xf32>, tensor<6xf32>, tensor<i32>, tensor<24xi32>, tensor<4xi32>, tensor<6xf32>
    }
  %second = stablehlo.slice %a#5 [1:2] : (tensor<4xi32>) -> tensor<1xi32>
  return %a#1, %a#2, %a#3, %a#4, %a#5, %a#6, %second : tensor<6x6xf32>, tensor<6xf32>, tensor<i32>, tensor<24xi32>, tensor<4xi32>, tensor<6xf32>, tensor<1xi32>
}
