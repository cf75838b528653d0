// options: target=linalg
// CHECK-LABEL: func.func public @main
// CHECK:      %[[R:.*]] = stablehlo.composite "hlo_lower.insert_slice" %arg0, %{{.*}} {composite_attributes = {offsets = dense<[1, 0]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}, decomposition = @[[DECOMPOSITION:.*]]} :
// CHECK-NEXT: return %[[R]]
// CHECK:      func.func private @[[DECOMPOSITION]](
// CHECK:      stablehlo.select
// CHECK-NOT:  stablehlo.scatter

func.func public @main(%o: tensor<8x4xf32>, %i: tensor<4xi32>, %up: tensor<3x4xf32>)
    -> tensor<8x4xf32> {
  %j = stablehlo.constant dense<[[1], [3], [5]]> : tensor<3x1xi32>
  %r = "stablehlo.scatter"(%o, %j, %up) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
    index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
