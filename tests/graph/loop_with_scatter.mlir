// A loop whose body writes into a tensor, a function that is called twice, and one that is only declared.
module @m {
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>, %d: tensor<?xui8>) -> (tensor<4xf32>, tensor<i32>) {
    %a = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %b = call @twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %c:2 = stablehlo.while(%i = %n, %v = %b) : tensor<i32>, tensor<4xf32>
    cond {
      %limit = stablehlo.constant dense<3> : tensor<i32>
      %less = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %less : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<1xi32>
      %u = stablehlo.constant dense<1.0> : tensor<f32>
      %w = "stablehlo.scatter"(%v, %z, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        stablehlo.return %q : tensor<f32>
      }) : (tensor<4xf32>, tensor<1xi32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %next, %w : tensor<i32>, tensor<4xf32>
    }
    return %c#1, %c#0 : tensor<4xf32>, tensor<i32>
  }
  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %r = stablehlo.add %x, %x : tensor<4xf32>
    return %r : tensor<4xf32>
  }
  func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
}
