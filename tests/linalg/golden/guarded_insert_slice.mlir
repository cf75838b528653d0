// options: named=True
// One window at a runtime start: what is written is select(in bounds, update, what was there), at the clamped start.
// CHECK-LABEL: func.func @main
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: arith.cmpi {predicate = 0 : i64}
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: %[[LOW:.*]] = arith.maxsi %[[I]], %c0
// CHECK: %[[AT:.*]] = arith.minsi %[[LOW]], %c7
// CHECK: %[[OLD:.*]] = tensor.extract_slice %arg0[%[[AT]], 0] [1, 4] [1, 1]
// CHECK: %[[INSIDE:.*]] = tensor.extract %{{.*}}[] : tensor<i1>
// CHECK: %[[NEW:.*]] = linalg.map ins(%{{.*}}, %[[OLD]] :
// CHECK: arith.select %[[INSIDE]],
// CHECK: tensor.insert_slice %[[NEW]] into %arg0[%[[AT]], 0] [1, 4] [1, 1]
// CHECK-NOT: stablehlo
func.func @main(%operand: tensor<8x4xf32>, %start: tensor<1xi32>, %updates: tensor<4xf32>) -> tensor<8x4xf32> {
  %r = "stablehlo.scatter"(%operand, %start, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
