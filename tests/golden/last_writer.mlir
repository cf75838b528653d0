// options: oob=xla prefer=last_writer
// CHECK:      %[[NUMBER:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x5xi1>, tensor<1x5xi32>
// CHECK:      %[[HIT:.*]] = stablehlo.compare EQ, %{{.*}}, %{{.*}}, SIGNED : (tensor<1x8x5xi32>, tensor<1x8x5xi32>) -> tensor<1x8x5xi1>
// CHECK:      %[[N:.*]] = stablehlo.select %[[HIT]],
// CHECK:      %[[LEAST:.*]] = stablehlo.constant dense<-2147483648> : tensor<i32>
// CHECK:      %[[LAST:.*]] = stablehlo.reduce(%[[N]] init: %[[LEAST]]) applies stablehlo.maximum across dimensions = [2]
// CHECK:      stablehlo.compare NE, %[[LAST]],
// CHECK:      stablehlo.maximum %[[LAST]],
// CHECK:      "stablehlo.gather"
// CHECK:      stablehlo.select %{{.*}}, %{{.*}}, %arg0
// CHECK-NOT:  stablehlo.while
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<5x1xi32>, %up: tensor<5x4xf32>)
    -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%o, %i, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %u: tensor<f32>):
    stablehlo.return %u : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<5x1xi32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
