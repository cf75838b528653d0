// Two pairs that are turned alike, of which the second is reshaped where results are gathered. The test fills in FIRST,
// what else takes the first one, and RESULT.
func.func public @main(%x0: tensor<2x8xf32>, %x1: tensor<2x8xf32>, %cos: tensor<2x4xf32>, %sin: tensor<2x4xf32>)
    -> (tensor<2x4x2xf32>, tensor<2x8xf32>) {
  %e0 = stablehlo.slice %x0 [0:2, 0:8:2] : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %o0 = stablehlo.slice %x0 [0:2, 1:8:2] : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %ec0 = stablehlo.multiply %e0, %cos : tensor<2x4xf32>
  %os0 = stablehlo.multiply %o0, %sin : tensor<2x4xf32>
  %es0 = stablehlo.multiply %e0, %sin : tensor<2x4xf32>
  %oc0 = stablehlo.multiply %o0, %cos : tensor<2x4xf32>
  %first0 = stablehlo.subtract %ec0, %os0 : tensor<2x4xf32>
  %second0 = stablehlo.add %oc0, %es0 : tensor<2x4xf32>
  %a0 = stablehlo.reshape %first0 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %b0 = stablehlo.reshape %second0 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %y0 = stablehlo.concatenate %a0, %b0, dim = 2 : (tensor<2x4x1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x2xf32>
  %e1 = stablehlo.slice %x1 [0:2, 0:8:2] : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %o1 = stablehlo.slice %x1 [0:2, 1:8:2] : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %ec1 = stablehlo.multiply %e1, %cos : tensor<2x4xf32>
  %os1 = stablehlo.multiply %o1, %sin : tensor<2x4xf32>
  %es1 = stablehlo.multiply %e1, %sin : tensor<2x4xf32>
  %oc1 = stablehlo.multiply %o1, %cos : tensor<2x4xf32>
  %first1 = stablehlo.subtract %ec1, %os1 : tensor<2x4xf32>
  %second1 = stablehlo.add %oc1, %es1 : tensor<2x4xf32>
  %a1 = stablehlo.reshape %first1 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %b1 = stablehlo.reshape %second1 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
  %y1 = stablehlo.concatenate %a1, %b1, dim = 2 : (tensor<2x4x1xf32>, tensor<2x4x1xf32>) -> tensor<2x4x2xf32>
  %other = stablehlo.sine %cos : tensor<2x4xf32>
  FIRST
  %r1 = stablehlo.reshape %y1 : (tensor<2x4x2xf32>) -> tensor<2x8xf32>
  return RESULT, %r1 : tensor<2x4x2xf32>, tensor<2x8xf32>
}
