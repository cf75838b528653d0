func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x?xi32>, %i: tensor<?x1xi32>, %u: tensor<?x3xf32>, %at: tensor<i32>, %one: tensor<1x?xi32>, %e: tensor<?xi32>) ->
    (tensor<?xi32>, tensor<?x?xi32>, tensor<?xf32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x?xi32>, tensor<4x?xi32>, tensor<?x3xf32>,
     tensor<?x3xf32>, tensor<?xf32>, tensor<?x3xf32>, tensor<i32>, tensor<?xi32>, tensor<?x3xf32>, tensor<?x?xi32>, tensor<2x3xf32>, tensor<?x?xi32>, tensor<?xi32>, tensor<1x?x?xi32>, tensor<?xi32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c2 = stablehlo.constant dense<2> : tensor<i32>
  %v0 = stablehlo.constant dense<0> : tensor<1xi32>
  %v1 = stablehlo.constant dense<1> : tensor<1xi32>
  %v2 = stablehlo.constant dense<2> : tensor<1xi32>
  %v3 = stablehlo.constant dense<3> : tensor<1xi32>
  %f = stablehlo.constant dense<0.5> : tensor<f32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %a = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x?xi32>) -> tensor<i32>
  %b = stablehlo.get_dimension_size %y, dim = 1 : (tensor<?x?xi32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %a1 = stablehlo.reshape %a : (tensor<i32>) -> tensor<1xi32>
  %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>
  %ab = stablehlo.concatenate %a1, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  // sizes as numbers, and what is made of sizes alone
  %iota = stablehlo.dynamic_iota %n1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
  %nb = stablehlo.dynamic_broadcast_in_dim %n, %n1, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
  %r0 = stablehlo.subtract %nb, %iota : tensor<?xi32>
  // a dim of size 1 is spread, one of as many is not
  %wide = stablehlo.dynamic_broadcast_in_dim %one, %ab, dims = [0, 1] : (tensor<1x?xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  %r1 = stablehlo.add %wide, %y : tensor<?x?xi32>
  // dims put together, and taken apart
  %n3 = stablehlo.multiply %n1, %v3 : tensor<1xi32>
  %flat = stablehlo.dynamic_reshape %x, %n3 : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %r2 = stablehlo.reverse %flat, dims = [0] : tensor<?xf32>
  %n_3 = stablehlo.concatenate %n1, %v3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %r3 = stablehlo.dynamic_reshape %r2, %n_3 : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  // every second row from the first on; the row 0 of an empty tensor does not exist
  %begin = stablehlo.concatenate %v0, %v0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %step = stablehlo.concatenate %v2, %v1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %r4 = stablehlo.real_dynamic_slice %x, %begin, %n_3, %step : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
  // rows before, columns cut off
  %low = stablehlo.constant dense<[2, -1]> : tensor<2xi32>
  %high = stablehlo.constant dense<[0, 2]> : tensor<2xi32>
  %none = stablehlo.constant dense<0> : tensor<2xi32>
  %r5 = stablehlo.dynamic_pad %y, %c2, %low, %high, %none : (tensor<?x?xi32>, tensor<i32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xi32>
  // slices of one row and all columns
  %starts = stablehlo.constant dense<[[0], [5], [-1], [1]]> : tensor<4x1xi32>
  %row = stablehlo.concatenate %v1, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %r6 = "stablehlo.dynamic_gather"(%r5, %starts, %row) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<?x?xi32>, tensor<4x1xi32>, tensor<2xi32>) -> tensor<4x?xi32>
  // scatters of any number of rows: the last one stays, or all are added
  %r7 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) : (tensor<?x3xf32>, tensor<?x1xi32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %r8 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<?x3xf32>, tensor<?x1xi32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  // folds over any number of elements
  %r9 = stablehlo.reduce(%x init: %f) applies stablehlo.add across dimensions = [1] : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
  %cat = stablehlo.concatenate %x, %u, %x, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %most = stablehlo.reduce(%y init: %c1) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<?x?xi32>, tensor<i32>) -> tensor<i32>
  %turned = stablehlo.transpose %y, dims = [1, 0] : (tensor<?x?xi32>) -> tensor<?x?xi32>
  %square = stablehlo.dot_general %turned, %y, contracting_dims = [1] x [0] : (tensor<?x?xi32>, tensor<?x?xi32>) -> tensor<?x?xi32>
  %r12 = stablehlo.reduce(%square init: %c0) applies stablehlo.add across dimensions = [0] : (tensor<?x?xi32>, tensor<i32>) -> tensor<?xi32>
  // a loop to a size, and a branch
  %loop:2 = stablehlo.while(%k = %c1, %so_far = %x) : tensor<i32>, tensor<?x3xf32>
    cond {
      %less = stablehlo.compare LT, %k, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %next = stablehlo.add %k, %c1 : tensor<i32>
      %sum = stablehlo.add %so_far, %so_far : tensor<?x3xf32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<?x3xf32>
    }
  %has = stablehlo.compare GT, %a, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r14 = "stablehlo.if"(%has) ({
    stablehlo.return %y : tensor<?x?xi32>
  }, {
    stablehlo.return %wide : tensor<?x?xi32>
  }) : (tensor<i1>) -> tensor<?x?xi32>
  // what is at least as large as the slice
  %r15 = stablehlo.dynamic_slice %cat, %at, %c0, sizes = [2, 3] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %padded = stablehlo.pad %y, %c2, low = [1, 1], high = [0, 2], interior = [0, 0] : (tensor<?x?xi32>, tensor<i32>) -> tensor<?x?xi32>
  %r16 = stablehlo.dynamic_update_slice %padded, %y, %at, %at : (tensor<?x?xi32>, tensor<?x?xi32>, tensor<i32>, tensor<i32>) -> tensor<?x?xi32>
  // one number or as many as needed, and a dim before those that stay
  %r17 = stablehlo.dynamic_broadcast_in_dim %e, %a1, dims = [0] : (tensor<?xi32>, tensor<1xi32>) -> tensor<?xi32>
  %_ab = stablehlo.concatenate %v1, %a1, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
  %r18 = stablehlo.dynamic_reshape %y, %_ab : (tensor<?x?xi32>, tensor<3xi32>) -> tensor<1x?x?xi32>
  // quotients and remainders of positions
  %twos = stablehlo.dynamic_broadcast_in_dim %c2, %n1, dims = [] : (tensor<i32>, tensor<1xi32>) -> tensor<?xi32>
  %half = stablehlo.divide %iota, %twos : tensor<?xi32>
  %rest = stablehlo.remainder %iota, %twos : tensor<?xi32>
  %r19 = stablehlo.subtract %half, %rest : tensor<?xi32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %cat, %most, %r12, %loop#1, %r14, %r15, %r16, %r17, %r18, %r19 : tensor<?xi32>, tensor<?x?xi32>, tensor<?xf32>,
      tensor<?x3xf32>, tensor<?x3xf32>, tensor<?x?xi32>, tensor<4x?xi32>, tensor<?x3xf32>, tensor<?x3xf32>, tensor<?xf32>, tensor<?x3xf32>, tensor<i32>, tensor<?xi32>,
      tensor<?x3xf32>, tensor<?x?xi32>, tensor<2x3xf32>, tensor<?x?xi32>, tensor<?xi32>, tensor<1x?x?xi32>, tensor<?xi32>
}
