// options: oob=xla target=iree prefer=safe_scatter
// CHECK:      %[[ROWS:.*]] = stablehlo.pad %{{.*}}, %{{.*}}, low = [0, 0], high = [1, 0]
// CHECK:      "stablehlo.scatter"(%[[ROWS]],
// CHECK:      stablehlo.slice %{{.*}} [0:4, 0:1]

func.func public @main(%x: tensor<4x1xf32>, %j: tensor<4x1xi32>, %u: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %c = stablehlo.constant dense<3> : tensor<4x1xi32>
  %i = stablehlo.and %j, %c : tensor<4x1xi32>
  %s = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<4x1xf32>, tensor<4x1xi32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %s : tensor<4x1xf32>
}
