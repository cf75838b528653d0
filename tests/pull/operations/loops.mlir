func.func public @main(%n: tensor<i8>, %x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<i8>) {
  %three = stablehlo.constant dense<3> : tensor<i8>
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %one = stablehlo.constant dense<1> : tensor<i8>
  %nine = stablehlo.constant dense<9> : tensor<i8>
  %most = stablehlo.minimum %n, %three : tensor<i8>
  %w:3 = stablehlo.while(%k = %zero, %v = %x, %u = %x) : tensor<i8>, tensor<4xi8>, tensor<4xi8>
    cond {
      %c = stablehlo.compare LT, %k, %most, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.add %k, %one : tensor<i8>
      %d = stablehlo.reverse %u, dims = [0] : tensor<4xi8>
      %e = stablehlo.add %v, %d : tensor<4xi8>
      stablehlo.return %next, %e, %v : tensor<i8>, tensor<4xi8>, tensor<4xi8>
    }
  %s:2 = stablehlo.while(%k = %nine, %v = %x) : tensor<i8>, tensor<4xi8>
    cond {
      %c = stablehlo.compare NE, %k, %zero, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %next = stablehlo.subtract %k, %three : tensor<i8>
      %b = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i8>) -> tensor<4xi8>
      %m = stablehlo.multiply %v, %b : tensor<4xi8>
      stablehlo.return %next, %m : tensor<i8>, tensor<4xi8>
    }
  return %w#1, %w#2, %s#1, %w#0 : tensor<4xi8>, tensor<4xi8>, tensor<4xi8>, tensor<i8>
}
