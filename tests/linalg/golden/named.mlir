// options: named=True
// In named mode a reduction is linalg.reduce, a matrix product linalg.matmul or batch_matmul, a transpose
// linalg.transpose, elementwise work linalg.map; a window sum, for which there is no such op, is linalg.generic.
// CHECK-LABEL: func.func @main
// CHECK: linalg.reduce { arith.addi {{.*}}} ins(%arg0 : tensor<4x8xi32>)
// CHECK: linalg.transpose ins(%arg0 : tensor<4x8xi32>)
// CHECK: linalg.matmul indexing_maps = [{{.*}}] ins(%arg0, %arg0 :
// CHECK: linalg.map
// CHECK: linalg.batch_matmul
// CHECK: linalg.generic
// CHECK-NOT: stablehlo
func.func @main(%a: tensor<4x8xi32>, %b: tensor<2x4x8xi32>, %c: tensor<2x8x4xi32>)
    -> (tensor<4xi32>, tensor<8x4xi32>, tensor<4x4xi32>, tensor<2x4x4xi32>, tensor<4x8xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xi32>, tensor<i32>) -> tensor<4xi32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xi32>) -> tensor<8x4xi32>
  %2 = stablehlo.dot_general %a, %1, contracting_dims = [1] x [0]
      : (tensor<4x8xi32>, tensor<8x4xi32>) -> tensor<4x4xi32>
  %3 = stablehlo.subtract %2, %2 : tensor<4x4xi32>
  %4 = stablehlo.dot_general %b, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<2x4x8xi32>, tensor<2x8x4xi32>) -> tensor<2x4x4xi32>
  %5 = "stablehlo.reduce_window"(%a, %zero) <{window_dimensions = array<i64: 1, 3>,
      padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    %s = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<4x8xi32>, tensor<i32>) -> tensor<4x8xi32>
  return %0, %1, %3, %4, %5 : tensor<4xi32>, tensor<8x4xi32>, tensor<4x4xi32>, tensor<2x4x4xi32>, tensor<4x8xi32>
}
