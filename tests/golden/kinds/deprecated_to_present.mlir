// options: target=no_dot
// CHECK:     stablehlo.dot_general %{{.*}}, %{{.*}}, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT]
// CHECK-NOT: stablehlo.dot %
func.func public @main(%x: tensor<4x5xf32>, %w: tensor<5x3xf32>) -> tensor<4x3xf32> {
  %r = stablehlo.dot %x, %w, precision = [HIGHEST, DEFAULT] : (tensor<4x5xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
