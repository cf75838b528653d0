// options: target=positive
// CHECK:      %[[SIZE:.+]] = stablehlo.abs %[[X:.+]] :
// CHECK-NEXT: %[[SINE:.+]] = stablehlo.sine %[[SIZE]]
// CHECK-NEXT: %[[BELOW:.+]] = stablehlo.compare LT, %[[X]], %[[SIZE]], FLOAT
// CHECK-NEXT: %[[MINUS:.+]] = stablehlo.negate %[[SINE]]
// CHECK-NEXT: %[[SIGNED:.+]] = stablehlo.select %[[BELOW]], %[[MINUS]], %[[SINE]]
// CHECK-NEXT: %[[SAME:.+]] = stablehlo.compare EQ, %[[SINE]], %[[SIZE]], FLOAT
// CHECK-NEXT: stablehlo.select %[[SAME]], %[[X]], %[[SIGNED]]

func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.sine %x : tensor<4xf32>
  return %r : tensor<4xf32>
}
