// options: target=no_reduce_precision
// CHECK:     stablehlo.bitcast_convert
// CHECK:     stablehlo.shift_right_logical
// CHECK:     stablehlo.and
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.and
// CHECK:     stablehlo.and
// CHECK:     stablehlo.and
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.or
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.select
// CHECK:     stablehlo.compare
// CHECK:     stablehlo.bitcast_convert
// CHECK:     stablehlo.select
// CHECK-NOT: stablehlo.reduce_precision
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = stablehlo.reduce_precision %x, format = e5m10 : tensor<3xf32>
  return %r : tensor<3xf32>
}
