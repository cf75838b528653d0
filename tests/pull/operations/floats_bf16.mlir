func.func public @main(%a: tensor<6xbf16>, %b: tensor<6xbf16>, %w: tensor<6xf32>) -> (tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xf32>, tensor<6xbf16>, tensor<6xi1>, tensor<6xbf16>) {
  %r0 = stablehlo.add %a, %b : tensor<6xbf16>
  %r1 = stablehlo.subtract %a, %b : tensor<6xbf16>
  %r2 = stablehlo.multiply %a, %b : tensor<6xbf16>
  %r3 = stablehlo.divide %a, %b : tensor<6xbf16>
  %r4 = stablehlo.maximum %a, %b : tensor<6xbf16>
  %r5 = stablehlo.minimum %a, %b : tensor<6xbf16>
  %r6 = stablehlo.negate %a : tensor<6xbf16>
  %r7 = stablehlo.abs %a : tensor<6xbf16>
  %r8 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<6xbf16>, tensor<6xbf16>) -> tensor<6xi1>
  %r9 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<6xbf16>, tensor<6xbf16>) -> tensor<6xi1>
  %r10 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<6xbf16>, tensor<6xbf16>) -> tensor<6xi1>
  %r11 = stablehlo.convert %a : (tensor<6xbf16>) -> tensor<6xf32>
  %r12 = stablehlo.convert %w : (tensor<6xf32>) -> tensor<6xbf16>
  %wide = stablehlo.convert %b : (tensor<6xbf16>) -> tensor<6xf32>
  %r13 = stablehlo.compare LT, %r11, %wide, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r14 = stablehlo.convert %wide : (tensor<6xf32>) -> tensor<6xbf16>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14 : tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xbf16>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xf32>, tensor<6xbf16>, tensor<6xi1>, tensor<6xbf16>
}
