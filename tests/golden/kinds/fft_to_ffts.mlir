// options: target=no_forms
// CHECK:      %[[ROWS:.*]] = stablehlo.fft %arg0, type = RFFT, length = [8]
// CHECK-NEXT: %[[TURNED:.*]] = stablehlo.transpose %[[ROWS]], dims = [1, 0]
// CHECK-NEXT: %[[COLUMNS:.*]] = stablehlo.fft %[[TURNED]], type = FFT, length = [4]
// CHECK-NEXT: stablehlo.transpose %[[COLUMNS]], dims = [1, 0]
func.func public @main(%x: tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>> {
  %r = stablehlo.fft %x, type = RFFT, length = [4, 8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
  return %r : tensor<4x5xcomplex<f32>>
}
