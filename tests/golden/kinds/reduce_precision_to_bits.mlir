// options: target=no_reduce_precision
// CHECK:     stablehlo.bitcast_convert
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.and
// CHECK:     stablehlo.broadcast_in_dim
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.bitcast_convert
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.reduce_precision
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.reduce_precision %x, format = e5m10 : tensor<3xf32>
  return %r : tensor<3xf32>
}
