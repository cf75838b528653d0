// options: target=no_forms
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.concatenate
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.slice
// CHECK-NOT: stablehlo.pad
func.func public @main(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<4x7xf32> {
  %r = stablehlo.pad %x, %v, low = [-1, 0], high = [0, 0], interior = [1, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}
