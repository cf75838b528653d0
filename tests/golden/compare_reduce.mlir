// options: oob=xla prefer=compare_reduce
// CHECK:      %[[NUMBER:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x5xi1>, tensor<1x5xi32>
// CHECK:      %[[HIT:.*]] = stablehlo.compare EQ, %{{.*}}, %{{.*}}, SIGNED : (tensor<1x8x5xi32>, tensor<1x8x5xi32>) -> tensor<1x8x5xi1>
// CHECK:      %[[U:.*]] = stablehlo.select %{{.*}} : tensor<1x8x5x4xi1>, tensor<1x8x5x4xi32>
// CHECK:      stablehlo.reduce(%[[U]] init: %{{.*}}) applies stablehlo.add across dimensions = [2]
// CHECK:      stablehlo.add %arg0,
// CHECK-NOT:  stablehlo.select
// CHECK-NOT:  stablehlo.while
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
