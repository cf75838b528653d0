// options: target=signed_only
// CHECK-DAG:  %[[X:.*]] = stablehlo.bitcast_convert %arg0 : (tensor<4xi64>) -> tensor<4x2xi32>
// CHECK-DAG:  %[[Y:.*]] = stablehlo.bitcast_convert %arg1 : (tensor<4xi64>) -> tensor<4x2xi32>
// CHECK:      %[[R:.*]] = stablehlo.xor %[[X]], %[[Y]] : tensor<4x2xi32>
// CHECK-NEXT: stablehlo.bitcast_convert %[[R]] : (tensor<4x2xi32>) -> tensor<4xi64>
// CHECK-NEXT: return
func.func public @main(%x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %r = stablehlo.xor %x, %y : tensor<4xi64>
  return %r : tensor<4xi64>
}
