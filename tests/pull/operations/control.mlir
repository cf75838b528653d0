func.func public @main(%n: tensor<i8>, %x: tensor<2xi8>, %u: tensor<5x2xi8>, %j: tensor<5xi32>) -> (tensor<2xi8>, tensor<5x2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %small = stablehlo.constant dense<1> : tensor<i8>
  %w:3 = stablehlo.while(%k = %zero, %v = %x, %t = %u) : tensor<i32>, tensor<2xi8>, tensor<5x2xi8>
    cond {
      %c = stablehlo.compare LT, %k, %five, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i32>
      %row = stablehlo.dynamic_slice %u, %k, %zero, sizes = [1, 2] : (tensor<5x2xi8>, tensor<i32>, tensor<i32>) -> tensor<1x2xi8>
      %flat = stablehlo.reshape %row : (tensor<1x2xi8>) -> tensor<2xi8>
      %twice = stablehlo.add %v, %v : tensor<2xi8>
      %d = stablehlo.subtract %twice, %flat : tensor<2xi8>
      %s = stablehlo.dynamic_slice %j, %k, sizes = [1] : (tensor<5xi32>, tensor<i32>) -> tensor<1xi32>
      %at = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
      %old = stablehlo.dynamic_slice %t, %at, %zero, sizes = [1, 2] : (tensor<5x2xi8>, tensor<i32>, tensor<i32>) -> tensor<1x2xi8>
      %new = stablehlo.multiply %old, %row : tensor<1x2xi8>
      %t1 = stablehlo.dynamic_update_slice %t, %new, %at, %zero : (tensor<5x2xi8>, tensor<1x2xi8>, tensor<i32>, tensor<i32>) -> tensor<5x2xi8>
      stablehlo.return %next, %d, %t1 : tensor<i32>, tensor<2xi8>, tensor<5x2xi8>
    }
  %p = stablehlo.compare GT, %n, %small, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
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
  %m = "stablehlo.map"(%x, %w#1) <{dimensions = array<i64: 0>}> ({
  ^bb0(%e: tensor<i8>, %f: tensor<i8>):
    %q = stablehlo.subtract %e, %f : tensor<i8>
    stablehlo.return %q : tensor<i8>
  }) : (tensor<2xi8>, tensor<2xi8>) -> tensor<2xi8>
  %b = stablehlo.optimization_barrier %m : tensor<2xi8>
  %h = stablehlo.custom_call @Sharding(%b) {mhlo.sharding = "{replicated}"} : (tensor<2xi8>) -> tensor<2xi8>
  return %w#1, %w#2, %i, %s, %m, %h, %w#0 : tensor<2xi8>, tensor<5x2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<2xi8>, tensor<i32>
}
