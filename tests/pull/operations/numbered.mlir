// scatters in which a number of a batch is an index
func.func @main(%op: tensor<4x3xi32>, %few: tensor<2x3xi32>, %i: tensor<3x2x1xi32>, %u: tensor<3x2xi32>) -> (tensor<4x3xi32>, tensor<4x3xi32>, tensor<2x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>) {
  %n = stablehlo.iota dim = 0 : tensor<3x2x1xi32>
  %m = stablehlo.iota dim = 1 : tensor<3x2x1xi32>
  %none = stablehlo.constant dense<0> : tensor<3x2x1xi32>
  %rows = stablehlo.constant dense<4> : tensor<3x2x1xi32>
  %below = stablehlo.compare LT, %n, %none : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x1xi1>
  %more = stablehlo.add %n, %rows : tensor<3x2x1xi32>
  %own = stablehlo.select %below, %more, %n : tensor<3x2x1xi1>, tensor<3x2x1xi32>
  // 4 rows, 3 of which are written, the last write in a row counts
  %a = stablehlo.concatenate %own, %i, dim = 2 : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x2xi32>
  %0 = "stablehlo.scatter"(%op, %a, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    stablehlo.return %d : tensor<i32>
  }) : (tensor<4x3xi32>, tensor<3x2x2xi32>, tensor<3x2xi32>) -> tensor<4x3xi32>
  // the number of the inner dim, in the other order of components
  %b = stablehlo.concatenate %m, %i, dim = 2 : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x2xi32>
  %1 = "stablehlo.scatter"(%op, %b, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.maximum %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<4x3xi32>, tensor<3x2x2xi32>, tensor<3x2xi32>) -> tensor<4x3xi32>
  // more numbers than rows
  %2 = "stablehlo.scatter"(%few, %a, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.subtract %d, %c : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<2x3xi32>, tensor<3x2x2xi32>, tensor<3x2xi32>) -> tensor<2x3xi32>
  // both numbers, and one number twice
  %e = stablehlo.concatenate %n, %m, dim = 2 : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x2xi32>
  %3 = "stablehlo.scatter"(%op, %e, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %f = stablehlo.subtract %d, %c : tensor<i32>
    stablehlo.return %f : tensor<i32>
  }) : (tensor<4x3xi32>, tensor<3x2x2xi32>, tensor<3x2xi32>) -> tensor<4x3xi32>
  %t = stablehlo.concatenate %n, %n, dim = 2 : (tensor<3x2x1xi32>, tensor<3x2x1xi32>) -> tensor<3x2x2xi32>
  %4 = "stablehlo.scatter"(%op, %t, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 2>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %f = stablehlo.subtract %d, %c : tensor<i32>
    stablehlo.return %f : tensor<i32>
  }) : (tensor<4x3xi32>, tensor<3x2x2xi32>, tensor<3x2xi32>) -> tensor<4x3xi32>
  return %0, %1, %2, %3, %4 : tensor<4x3xi32>, tensor<4x3xi32>, tensor<2x3xi32>, tensor<4x3xi32>, tensor<4x3xi32>
}
