func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %x = stablehlo.complex %a, %b : tensor<4xcomplex<f32>>
  %y = stablehlo.complex %b, %c : tensor<4xcomplex<f32>>
  %s = stablehlo.add %x, %y : tensor<4xcomplex<f32>>
  %d = stablehlo.subtract %s, %y : tensor<4xcomplex<f32>>
  %n = stablehlo.negate %s : tensor<4xcomplex<f32>>
  %r0 = stablehlo.real %s : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r1 = stablehlo.imag %s : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r2 = stablehlo.real %d : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r3 = stablehlo.imag %d : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r4 = stablehlo.real %n : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r5 = stablehlo.imag %n : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %r6 = stablehlo.compare EQ, %x, %y, FLOAT : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}
