// options: oob=xla target=iree prefer=safe_scatter
// CHECK:      stablehlo.pad %{{.*}}, low = [0, 0], high = [1, 0]
// CHECK:      "stablehlo.scatter"
// CHECK:      stablehlo.add
// CHECK:      (tensor<5x1xi32>, tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<5x1xi32>
// CHECK:      stablehlo.slice %{{.*}} [0:4, 0:1]
// CHECK-NOT:  stablehlo.while

func.func public @main(%o: tensor<4xi32>, %k: tensor<6x1xi32>, %up: tensor<6xi32>) -> tensor<4xi32> {
  %r = "stablehlo.scatter"(%o, %k, %up) <{scatter_dimension_numbers = #stablehlo.scatter<
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<i32>, %u: tensor<i32>):
    %s = stablehlo.add %c, %u : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4xi32>, tensor<6x1xi32>, tensor<6xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
