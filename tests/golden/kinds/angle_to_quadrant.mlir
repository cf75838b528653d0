// options: target=quadrants
// CHECK:      stablehlo.bitcast_convert
// CHECK:      stablehlo.gather
// CHECK:      stablehlo.multiply {{.*}} : tensor<3x4xi64>
// CHECK:      stablehlo.round_nearest_even
// CHECK:      stablehlo.abs
// CHECK-NEXT: stablehlo.sine
// CHECK-NEXT: stablehlo.cosine

func.func public @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = stablehlo.cosine %x : tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
