func.func public @main(%x: tensor<2x5xi8>, %y: tensor<2x5xi8>, %f: tensor<6xf32>, %t: tensor<2xi1>, %w: tensor<6xi8>, %z: tensor<6xi8>)
    -> (tensor<2x5xi8>, tensor<2x5xi8>, tensor<6xi32>, tensor<5x2xi8>, tensor<2xi1>, tensor<2x5xi8>, tensor<3xf32>, tensor<3xi32>,
    tensor<2x2xi8>, tensor<2x2xi32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi8>, tensor<6xi32>) {
  %s:2 = "stablehlo.sort"(%x, %y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>, %c: tensor<i8>, %d: tensor<i8>):
    %0 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<2x5xi8>, tensor<2x5xi8>) -> (tensor<2x5xi8>, tensor<2x5xi8>)
  %i = stablehlo.iota dim = 0 : tensor<6xi32>
  %g:2 = "stablehlo.sort"(%f, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x5xi8>) -> tensor<5x2xi8>
  %u = "stablehlo.sort"(%r) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>):
    %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<5x2xi8>) -> tensor<5x2xi8>
  %v = "stablehlo.sort"(%t) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i1>, %b: tensor<i1>):
    %0 = stablehlo.compare LT, %a, %b, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<2xi1>) -> tensor<2xi1>
  %one:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i8>, %b: tensor<i8>, %c: tensor<i8>, %d: tensor<i8>):
    %0 = stablehlo.compare LT, %c, %d, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    %1 = stablehlo.compare EQ, %c, %d, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    %2 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    %4 = stablehlo.or %0, %3 : tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<2x5xi8>, tensor<2x5xi8>) -> (tensor<2x5xi8>, tensor<2x5xi8>)
  %k, %at = chlo.top_k(%f, k = 3) : tensor<6xf32> -> (tensor<3xf32>, tensor<3xi32>)
  %l, %to = chlo.top_k(%x, k = 2) : tensor<2x5xi8> -> (tensor<2x2xi8>, tensor<2x2xi32>)
  // one number goes to each place, or several to one of them, and the numbers that go there are looked for
  %g1 = stablehlo.reshape %g#1 : (tensor<6xi32>) -> tensor<6x1xi32>
  %sum = "stablehlo.scatter"(%f, %g1, %f) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<6xf32>, tensor<6x1xi32>, tensor<6xf32>) -> tensor<6xf32>
  %three = stablehlo.constant dense<3> : tensor<6x1xi32>
  %few = stablehlo.minimum %g1, %three : tensor<6x1xi32>
  %sums = "stablehlo.scatter"(%f, %few, %f) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<6xf32>, tensor<6x1xi32>, tensor<6xf32>) -> tensor<6xf32>
  %where = stablehlo.broadcast_in_dim %g#1, dims = [1] : (tensor<6xi32>) -> tensor<6x6xi32>
  %here = stablehlo.iota dim = 0 : tensor<6x6xi32>
  %is = stablehlo.compare EQ, %where, %here, SIGNED : (tensor<6x6xi32>, tensor<6x6xi32>) -> tensor<6x6xi1>
  %number = stablehlo.iota dim = 1 : tensor<6x6xi32>
  %none = stablehlo.constant dense<-1> : tensor<6x6xi32>
  %low = stablehlo.constant dense<-2147483648> : tensor<i32>
  %those = stablehlo.select %is, %number, %none : tensor<6x6xi1>, tensor<6x6xi32>
  %last = stablehlo.reduce(%those init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<6x6xi32>, tensor<i32>) -> tensor<6xi32>
  %twice = stablehlo.add %number, %number : tensor<6x6xi32>
  %those2 = stablehlo.select %is, %twice, %none : tensor<6x6xi1>, tensor<6x6xi32>
  %most = stablehlo.reduce(%those2 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<6x6xi32>, tensor<i32>) -> tensor<6xi32>
  // what was sorted is sorted by another key
  %w1, %o1 = chlo.top_k(%w, k = 6) : tensor<6xi8> -> (tensor<6xi8>, tensor<6xi32>)
  %at1 = stablehlo.reshape %o1 : (tensor<6xi32>) -> tensor<6x1xi32>
  %z1 = "stablehlo.gather"(%z, %at1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<6xi8>, tensor<6x1xi32>) -> tensor<6xi8>
  %z2, %o2 = chlo.top_k(%z1, k = 6) : tensor<6xi8> -> (tensor<6xi8>, tensor<6xi32>)
  return %s#0, %s#1, %g#1, %u, %v, %one#0, %k, %at, %l, %to, %sum, %sums, %last, %most, %z2, %o2
    : tensor<2x5xi8>, tensor<2x5xi8>, tensor<6xi32>, tensor<5x2xi8>, tensor<2xi1>, tensor<2x5xi8>, tensor<3xf32>,
      tensor<3xi32>, tensor<2x2xi8>, tensor<2x2xi32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi8>, tensor<6xi32>
}
