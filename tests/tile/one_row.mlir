// One row of logits is a product of one row.
// CHECK:      %0 = stablehlo.clamp %[[C0:.*]], %arg2, %[[C1:.*]] : tensor<i8>
// CHECK:      %1 = stablehlo.clamp %[[C2:.*]], %0, %[[C3:.*]] : tensor<i8>
// CHECK-NEXT: %2 = stablehlo.dynamic_slice %arg0, %1, %[[C2]], sizes = [1, 8]
// CHECK-NEXT: %3 = stablehlo.dot_general %2, %arg1, contracting_dims = [1] x [0]
// CHECK-NEXT: %4 = stablehlo.exponential %3 : tensor<1x96xf32>
// CHECK-NEXT: return %4 : tensor<1x96xf32>
func.func public @main(%x: tensor<64x8xf32>, %w: tensor<8x96xf32>, %i: tensor<i8>) -> tensor<1x96xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x8xf32>, tensor<8x96xf32>) -> tensor<64x96xf32>
  %likely = stablehlo.exponential %logits : tensor<64x96xf32>
  %row = stablehlo.dynamic_slice %likely, %i, %zero, sizes = [1, 96]
    : (tensor<64x96xf32>, tensor<i8>, tensor<i8>) -> tensor<1x96xf32>
  return %row : tensor<1x96xf32>
}
