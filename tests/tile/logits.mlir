// A loop over 32 columns of the logits, made by hand: a slice of w, a tile of the logits, a sum that is accumulated, a
// tile of dw.
// CHECK:      %[[START:.*]] = stablehlo.multiply %[[TRIP:.*]], %c{{.*}} : tensor<i32>
// CHECK:      %[[W:.*]] = stablehlo.dynamic_slice %{{.*}}, %{{.*}}, %[[START]], sizes = [8, 32]
// CHECK-NEXT: %[[TILE:.*]] = stablehlo.dot_general %[[X:.*]], %[[W]], contracting_dims = [1] x [0]
// CHECK-NEXT: %[[E:.*]] = stablehlo.exponential %[[TILE]] : tensor<24x32xf32>
// CHECK:      %[[PART:.*]] = stablehlo.reduce(%[[E]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK-NEXT: stablehlo.add %{{.*}}, %[[PART]] : tensor<24xf32>
// CHECK-NEXT: %[[DW:.*]] = stablehlo.dot_general %[[X]], %[[E]], contracting_dims = [0] x [0]
// CHECK:      stablehlo.dynamic_update_slice %{{.*}}, %[[DW]], %{{.*}}, %[[START]]
func.func public @main(%x: tensor<24x8xf32>, %w: tensor<8x96xf32>) -> (tensor<24xf32>, tensor<8x96xf32>) {
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<24x8xf32>, tensor<8x96xf32>) -> tensor<24x96xf32>
  %likely = stablehlo.exponential %logits : tensor<24x96xf32>
  %sums = stablehlo.reduce(%likely init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<24x96xf32>, tensor<f32>) -> tensor<24xf32>
  %dw = stablehlo.dot_general %x, %likely, contracting_dims = [0] x [0]
    : (tensor<24x8xf32>, tensor<24x96xf32>) -> tensor<8x96xf32>
  return %sums, %dw : tensor<24xf32>, tensor<8x96xf32>
}
