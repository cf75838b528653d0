// options: target=no_fft float_mode=reassociate
// CHECK:      %[[C:.*]] = stablehlo.constant dense<{{.*}}> : tensor<4x3xf32>
// CHECK:      %[[REAL:.*]] = stablehlo.dot_general %arg0, {{.*}} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK:      %[[IMAG:.*]] = stablehlo.dot_general %arg0, {{.*}} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: stablehlo.complex %[[REAL]], %[[IMAG]] : tensor<2x3xcomplex<f32>>
// CHECK-NOT:  stablehlo.fft
func.func public @main(%x: tensor<2x4xf32>) -> tensor<2x3xcomplex<f32>> {
  %r = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<2x4xf32>) -> tensor<2x3xcomplex<f32>>
  return %r : tensor<2x3xcomplex<f32>>
}
