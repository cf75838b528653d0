// options: target=only_xor
// CHECK:      %[[SUM:.*]] = stablehlo.add %arg0, %arg1 : tensor<4xi32>
// CHECK-NEXT: %[[ONE:.*]] = stablehlo.xor %arg0, %arg1 : tensor<4xi32>
// CHECK-NEXT: %[[TWICE:.*]] = stablehlo.subtract %[[SUM]], %[[ONE]] : tensor<4xi32>
// CHECK:      %[[LOWER:.*]] = stablehlo.shift_right_logical %[[TWICE]], %{{.*}} : tensor<4xi32>
// CHECK:      %[[MOST:.*]] = stablehlo.maximum %arg0, %arg1 : tensor<4xi32>
// CHECK:      %[[SIGN:.*]] = stablehlo.compare LE, %[[MOST]], %{{.*}}
// CHECK:      stablehlo.select %[[SIGN]], %{{.*}}, %[[LOWER]]
func.func public @main(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %r = stablehlo.and %x, %y : tensor<4xi32>
  return %r : tensor<4xi32>
}
