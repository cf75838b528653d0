// options: target=real_only
// CHECK:      func.func public @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK:      %[[AC:.*]] = stablehlo.multiply
// CHECK:      %[[BD:.*]] = stablehlo.multiply
// CHECK-NEXT: %[[REAL:.*]] = stablehlo.subtract %[[AC]], %[[BD]] : tensor<4xf32>
// CHECK:      %[[IMAG:.*]] = stablehlo.add
// CHECK-DAG:  stablehlo.reshape %[[REAL]] : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-DAG:  stablehlo.reshape %[[IMAG]] : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK:      stablehlo.concatenate
// CHECK-NOT:  complex
func.func public @main(%x: tensor<4xcomplex<f32>>, %y: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %r = stablehlo.multiply %x, %y : tensor<4xcomplex<f32>>
  return %r : tensor<4xcomplex<f32>>
}
