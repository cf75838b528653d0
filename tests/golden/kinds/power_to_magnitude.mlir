// options: target=positive
// CHECK:      %[[SIZE:.+]] = stablehlo.abs %[[X:.+]] :
// CHECK-NEXT: stablehlo.power %[[SIZE]], %[[Y:.+]] :
// CHECK:      stablehlo.floor %[[Y]]
// CHECK:      stablehlo.negate
// CHECK:      stablehlo.subtract %[[X]], %[[X]]
// CHECK:      stablehlo.select

func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %r = stablehlo.power %x, %y : tensor<4xf32>
  return %r : tensor<4xf32>
}
