// options: target=no_dynamic_update_slice
// CHECK:      %[[PADDED:.*]] = stablehlo.pad %arg1, %{{.*}}, low = [5, 0], high = [5, 0], interior = [0, 0]
// CHECK:      %[[MOVED:.*]] = stablehlo.dynamic_slice %[[PADDED]], %{{.*}}, %{{.*}}, sizes = [8, 4]
// CHECK:      stablehlo.select %{{.*}}, %[[MOVED]], %arg0
func.func public @main(%x: tensor<8x4xf32>, %u: tensor<3x4xf32>, %s: tensor<i32>, %t: tensor<i32>) -> tensor<8x4xf32> {
  %r = stablehlo.dynamic_update_slice %x, %u, %s, %t : (tensor<8x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
