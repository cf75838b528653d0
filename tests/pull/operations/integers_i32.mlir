func.func public @main(%a: tensor<24xi32>, %b: tensor<24xi32>, %c: tensor<24xi32>) -> (tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi8>, tensor<24xui8>, tensor<24xi16>, tensor<24xi32>, tensor<24xui32>, tensor<24xi64>) {
  %r0 = stablehlo.add %a, %b : tensor<24xi32>
  %r1 = stablehlo.subtract %a, %b : tensor<24xi32>
  %r2 = stablehlo.multiply %a, %b : tensor<24xi32>
  %r3 = stablehlo.maximum %a, %b : tensor<24xi32>
  %r4 = stablehlo.minimum %a, %b : tensor<24xi32>
  %r5 = stablehlo.divide %a, %b : tensor<24xi32>
  %r6 = stablehlo.remainder %a, %b : tensor<24xi32>
  %r7 = stablehlo.and %a, %b : tensor<24xi32>
  %r8 = stablehlo.or %a, %b : tensor<24xi32>
  %r9 = stablehlo.xor %a, %b : tensor<24xi32>
  %r10 = stablehlo.shift_left %a, %b : tensor<24xi32>
  %r11 = stablehlo.shift_right_arithmetic %a, %b : tensor<24xi32>
  %r12 = stablehlo.shift_right_logical %a, %b : tensor<24xi32>
  %r13 = stablehlo.clamp %b, %a, %c : tensor<24xi32>
  %r14 = stablehlo.not %a : tensor<24xi32>
  %r15 = stablehlo.negate %a : tensor<24xi32>
  %r16 = stablehlo.abs %a : tensor<24xi32>
  %r17 = stablehlo.sign %a : tensor<24xi32>
  %r18 = stablehlo.compare EQ, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r19 = stablehlo.compare NE, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r20 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r21 = stablehlo.compare LE, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r22 = stablehlo.compare GT, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r23 = stablehlo.compare GE, %a, %b, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
  %r24 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xi1>
  %r25 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xi8>
  %r26 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xui8>
  %r27 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xi16>
  %r28 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xi32>
  %r29 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xui32>
  %r30 = stablehlo.convert %a : (tensor<24xi32>) -> tensor<24xi64>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28, %r29, %r30 : tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi32>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi1>, tensor<24xi8>, tensor<24xui8>, tensor<24xi16>, tensor<24xi32>, tensor<24xui32>, tensor<24xi64>
}
