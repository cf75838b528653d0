module {
  func.func @main(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
    %0:2 = stablehlo.while(%a = %arg0, %b = %arg0) : tensor<f32>, tensor<f32>
    cond {
      %2 = stablehlo.compare  LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loc2)
      stablehlo.return %2 : tensor<i1> loc(#loc2)
    } do {
      stablehlo.return %a, %b : tensor<f32>, tensor<f32> loc(#loc2)
    } loc(#loc3)
    %1 = stablehlo.negate %0#0 : tensor<f32> loc(#loc4)
    return %1 : tensor<f32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("model/a.py":9:1)
#loc2 = loc("jit(f)/scatter"(#loc1))
#loc3 = loc("jit(f)/scatter"(#loc1))
#loc4 = loc("jit(f)/neg"(#loc1))
