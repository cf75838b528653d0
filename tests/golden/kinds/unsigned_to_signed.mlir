// options: target=signed_only
// CHECK-DAG:  %[[X:.*]] = stablehlo.bitcast_convert %{{.*}} : (tensor<4xui32>) -> tensor<4xi32>
// CHECK-DAG:  %[[LEAST:.*]] = stablehlo.constant dense<-2147483648> : tensor<4xi32>
// CHECK-DAG:  %[[FLIPPED:.*]] = stablehlo.xor %{{.*}}, %[[LEAST]] : tensor<4xi32>
// CHECK:      %[[MIN:.*]] = stablehlo.minimum %{{.*}}, %{{.*}} : tensor<4xi32>
// CHECK-NEXT: %[[BACK:.*]] = stablehlo.xor %[[MIN]], %[[LEAST]] : tensor<4xi32>
// CHECK-NEXT: stablehlo.bitcast_convert %[[BACK]] : (tensor<4xi32>) -> tensor<4xui32>
// CHECK-NEXT: return
func.func public @main(%x: tensor<4xui32>, %y: tensor<4xui32>) -> tensor<4xui32> {
  %r = stablehlo.minimum %x, %y : tensor<4xui32>
  return %r : tensor<4xui32>
}
