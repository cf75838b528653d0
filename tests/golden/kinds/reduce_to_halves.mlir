// options: target=no_reduce
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.concatenate
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.slice
// CHECK:     stablehlo.add
// CHECK:     stablehlo.add
// CHECK:     stablehlo.reshape
// CHECK:     stablehlo.add
// CHECK-NOT: stablehlo.reduce(
func.func public @main(%x: tensor<5xi32>) -> tensor<i32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<5xi32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}
