func.func public @main(%n: tensor<i8>, %x: tensor<2xi8>) -> (tensor<2xi8>, tensor<2xi8>, tensor<2xi8>) {
  %three = stablehlo.constant dense<3> : tensor<i8>
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %one = stablehlo.constant dense<1> : tensor<i8>
  %most = stablehlo.minimum %n, %three : tensor<i8>
  %w:2 = stablehlo.while(%k = %zero, %v = %x) : tensor<i8>, tensor<2xi8>
    cond {
      %c = stablehlo.compare LT, %k, %most, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i8>
      %d = func.call @double(%v) : (tensor<2xi8>) -> tensor<2xi8>
      stablehlo.return %next, %d : tensor<i8>, tensor<2xi8>
    }
  %p = stablehlo.compare GT, %n, %one, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
  %i = "stablehlo.if"(%p) ({
    stablehlo.return %x : tensor<2xi8>
  }, {
    %y = stablehlo.negate %x : tensor<2xi8>
    stablehlo.return %y : tensor<2xi8>
  }) : (tensor<i1>) -> tensor<2xi8>
  %n32 = stablehlo.convert %n : (tensor<i8>) -> tensor<i32>
  %s = "stablehlo.case"(%n32) ({
    stablehlo.return %x : tensor<2xi8>
  }, {
    %y = stablehlo.negate %x : tensor<2xi8>
    stablehlo.return %y : tensor<2xi8>
  }, {
    %y = stablehlo.not %x : tensor<2xi8>
    stablehlo.return %y : tensor<2xi8>
  }) : (tensor<i32>) -> tensor<2xi8>
  return %w#1, %i, %s : tensor<2xi8>, tensor<2xi8>, tensor<2xi8>
}
func.func private @double(%v: tensor<2xi8>) -> tensor<2xi8> {
  %0 = "stablehlo.map"(%v) <{dimensions = array<i64: 0>}> ({
  ^bb0(%e: tensor<i8>):
    %d = stablehlo.add %e, %e : tensor<i8>
    stablehlo.return %d : tensor<i8>
  }) : (tensor<2xi8>) -> tensor<2xi8>
  return %0 : tensor<2xi8>
}
