// options: oob=xla prefer=compare_reduce;mask_elements=100
// CHECK:      stablehlo.pad
// CHECK:      stablehlo.while
// CHECK:      stablehlo.dynamic_slice
// CHECK:      applies stablehlo.add across dimensions = [2]
// CHECK:      stablehlo.add %{{.*}} : tensor<1x8x4xi32>
// CHECK:      stablehlo.add %arg0,
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xi32>, %i: tensor<5x1xi32>, %up: tensor<5x4xi32>)
    -> tensor<8x4xi32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<i32>, %u: tensor<i32>):
    %s = stablehlo.add %c, %u : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<8x4xi32>, tensor<5x1xi32>, tensor<5x4xi32>) -> tensor<8x4xi32>
  return %r : tensor<8x4xi32>
}
