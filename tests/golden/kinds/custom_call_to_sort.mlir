// options: target=plain
// CHECK:      %[[I:.*]] = stablehlo.iota dim = 0 : tensor<9xi32>
// CHECK:      %[[S:.*]]:2 = "stablehlo.sort"(%{{.*}}, %[[I]])
// CHECK:      stablehlo.compare LT
// CHECK:      %[[V:.*]] = stablehlo.slice %[[S]]#0 [0:3] : (tensor<9xi32>) -> tensor<3xi32>
// CHECK-NEXT: %[[P:.*]] = stablehlo.slice %[[S]]#1 [0:3] : (tensor<9xi32>) -> tensor<3xi32>
// CHECK-NEXT: return %[[V]], %[[P]]
module {
  func.func public @main(%x: tensor<9xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
    %i = stablehlo.iota dim = 0 : tensor<9xi32>
    %n = stablehlo.constant dense<-1> : tensor<i32>
    %l = stablehlo.constant dense<2147483647> : tensor<i32>
    %t:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %l, %n) {called_computations = [@less],
      mhlo.backend_config = {aggregate_to_topk = true, recall_target = 9.5e-01 : f32, reduction_dim = 0 : i64,
      reduction_input_size_override = -1 : i64, top_k = 3 : i64}}
      : (tensor<9xi32>, tensor<9xi32>, tensor<i32>, tensor<i32>) -> (tensor<3xi32>, tensor<3xi32>)
    return %t#0, %t#1 : tensor<3xi32>, tensor<3xi32>
  }
  func.func private @less(%a: tensor<i32>, %b: tensor<i32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %r = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %r : tensor<i1>
  }
}
