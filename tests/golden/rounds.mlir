// options: oob=xla prefer=rounds
// CHECK:      %[[NUMBER:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x5xi1>, tensor<1x5xi32>
// CHECK:      "stablehlo.sort"
// CHECK:      "stablehlo.gather"
// CHECK:      %[[COUNT:.*]] = stablehlo.subtract
// CHECK:      stablehlo.reduce(%[[COUNT]] init:
// CHECK:      stablehlo.while
// CHECK:      cond {
// CHECK:      stablehlo.compare LT,
// CHECK:      do {
// CHECK:      %[[HIT:.*]] = stablehlo.compare LT,
// CHECK:      "stablehlo.gather"
// CHECK:      %[[SUM:.*]] = stablehlo.add
// CHECK:      stablehlo.select %{{.*}}, %[[SUM]],
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<5x1xi32>, %up: tensor<5x4xf32>)
    -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    %s = stablehlo.add %c, %u : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
