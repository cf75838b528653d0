func.func public @main(%a: tensor<6xf32>, %b: tensor<6xf32>, %h: tensor<6xf32>, %c: tensor<6xi1>, %i: tensor<6xi8>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf16>, tensor<6xbf16>, tensor<6xf64>, tensor<6xi1>, tensor<6xi32>, tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>, tensor<6xf32>) {
  %two = stablehlo.constant dense<-4.0> : tensor<6xf32>
  %ez = stablehlo.constant dense<2.0> : tensor<6xf32>
  %one = stablehlo.constant dense<1.0> : tensor<6xf32>
  %r0 = stablehlo.add %a, %b : tensor<6xf32>
  %r1 = stablehlo.subtract %a, %b : tensor<6xf32>
  %r2 = stablehlo.multiply %a, %b : tensor<6xf32>
  %r3 = stablehlo.divide %a, %b : tensor<6xf32>
  %r4 = stablehlo.maximum %a, %b : tensor<6xf32>
  %r5 = stablehlo.minimum %a, %b : tensor<6xf32>
  %r6 = stablehlo.negate %a : tensor<6xf32>
  %r7 = stablehlo.abs %a : tensor<6xf32>
  %r8 = stablehlo.floor %a : tensor<6xf32>
  %r9 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r10 = stablehlo.compare NE, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r11 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r12 = stablehlo.compare LE, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r13 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r14 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xi1>
  %r15 = stablehlo.is_finite %a : (tensor<6xf32>) -> tensor<6xi1>
  %r16 = stablehlo.select %c, %a, %b : tensor<6xi1>, tensor<6xf32>
  %r17 = stablehlo.clamp %b, %a, %h : tensor<6xf32>
  %r18 = stablehlo.divide %a, %two : tensor<6xf32>
  %r19 = stablehlo.multiply %a, %one : tensor<6xf32>
  %r20 = stablehlo.power %a, %ez : tensor<6xf32>
  %r21 = stablehlo.convert %a : (tensor<6xf32>) -> tensor<6xf16>
  %r22 = stablehlo.convert %a : (tensor<6xf32>) -> tensor<6xbf16>
  %r23 = stablehlo.convert %a : (tensor<6xf32>) -> tensor<6xf64>
  %r24 = stablehlo.convert %a : (tensor<6xf32>) -> tensor<6xi1>
  %r25 = stablehlo.convert %i : (tensor<6xi8>) -> tensor<6xi32>
  %r26 = stablehlo.convert %i : (tensor<6xi8>) -> tensor<6xf32>
  %r27 = stablehlo.convert %i : (tensor<6xi8>) -> tensor<6xbf16>
  %r28 = stablehlo.convert %c : (tensor<6xi1>) -> tensor<6xf32>
  %r29 = chlo.square %a : tensor<6xf32> -> tensor<6xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18, %r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27, %r28, %r29 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xi1>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf16>, tensor<6xbf16>, tensor<6xf64>, tensor<6xi1>, tensor<6xi32>, tensor<6xf32>, tensor<6xbf16>, tensor<6xf32>, tensor<6xf32>
}
