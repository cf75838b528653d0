// options: oob=xla target=iree prefer=safe_scatter_of_run
// CHECK:      "stablehlo.scatter"
// CHECK-SAME: update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1
// CHECK:      stablehlo.dynamic_update_slice
// CHECK-NOT:  stablehlo.dynamic_update_slice
// CHECK-NOT:  "stablehlo.gather"
// CHECK-NOT:  stablehlo.while

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<i32>, %up: tensor<3x4xf32>)
    -> tensor<8x4xf32> {
  %base = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<3xi32>
  %iota = stablehlo.iota dim = 0 : tensor<3xi32>
  %x = stablehlo.add %base, %iota : tensor<3xi32>
  %zero = stablehlo.constant dense<0> : tensor<3xi32>
  %size = stablehlo.constant dense<8> : tensor<3xi32>
  %up_by = stablehlo.add %x, %size : tensor<3xi32>
  %below = stablehlo.compare LT, %x, %zero, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
  %y = stablehlo.select %below, %up_by, %x : tensor<3xi1>, tensor<3xi32>
  %j = stablehlo.reshape %y : (tensor<3xi32>) -> tensor<3x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
