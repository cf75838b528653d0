// Scatters whose indices, body or update a lowering does not need: what it left dead goes, what was dead before stays.
// Each module begins with what it shows, and says which words are GONE from the lowered text and which ones it KEEPS.
// -----
// a chain of producers
// GONE: constant
// GONE: broadcast_in_dim
// GONE: stablehlo.add
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<9> : tensor<i32>
    %s = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %i = stablehlo.add %s, %s : tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
// -----
// what was dead before
// GONE: dense<9>
// KEEPS: stablehlo.sine
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.constant dense<9> : tensor<1xi32>
    %dead = stablehlo.sine %u : tensor<f32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
// -----
// what others use
// GONE: stablehlo.add
// KEEPS: dense<9>
// KEEPS: stablehlo.negate
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %c = stablehlo.constant dense<9> : tensor<1xi32>
    %i = stablehlo.add %c, %c : tensor<1xi32>
    %dead = stablehlo.negate %c : tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
// -----
// private functions that are no longer called
// GONE: @outer
// GONE: @helper
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = call @outer(%n) : (tensor<1xi32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func private @outer(%x: tensor<1xi32>) -> tensor<1xi32> {
  %r = call @helper(%x) : (tensor<1xi32>) -> tensor<1xi32>
  return %r : tensor<1xi32>
}
func.func private @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}
// -----
// a public function
// KEEPS: @helper
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func public @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}
// -----
// a function with another call
// KEEPS: @helper
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>
    %j = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func private @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}
// -----
// a function that a composite names
// KEEPS: @helper
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = call @helper(%n) : (tensor<1xi32>) -> tensor<1xi32>
    %j = stablehlo.composite "my.op" %n {decomposition = @helper} : (tensor<1xi32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func private @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}
// -----
// a private function that was never called
// KEEPS: @helper
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.constant dense<9> : tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func private @helper(%x: tensor<1xi32>) -> tensor<1xi32> {
  %c = stablehlo.constant dense<9> : tensor<1xi32>
  %r = stablehlo.maximum %x, %c : tensor<1xi32>
  return %r : tensor<1xi32>
}
// -----
// a function that only the region called
// GONE: @sum
// KEEPS: stablehlo.add
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.constant dense<3> : tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = func.call @sum(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %r = stablehlo.add %x, %y : tensor<f32>
  return %r : tensor<f32>
}
// -----
// a constant that only the region captured
// GONE: dense<7.0
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.constant dense<9> : tensor<1xi32>
    %k = stablehlo.constant dense<7.0> : tensor<f32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %k : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
// -----
// a producer with effects
// KEEPS: stablehlo.custom_call @log
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.custom_call @log(%n) {has_side_effect = true} : (tensor<1xi32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %o : tensor<8xf32>
}
// -----
// an op with regions and what it holds
// GONE: stablehlo.reduce
// GONE: dense<9>
// GONE: dense<0>
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %nine = stablehlo.constant dense<9> : tensor<i32>
    %m = stablehlo.reduce(%n init: %z) across dimensions = [0] : (tensor<1xi32>, tensor<i32>) -> tensor<i32>
     reducer(%p: tensor<i32>, %q: tensor<i32>) {
      %t = stablehlo.maximum %p, %q : tensor<i32>
      %s = stablehlo.maximum %t, %nine : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }
    %i = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %r = "stablehlo.scatter"(%o, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
// -----
// an update that is not needed: tanh
// GONE: stablehlo.tanh
func.func public @main(%o: tensor<8xf32>, %n: tensor<1xi32>, %u: tensor<f32>) -> tensor<8xf32> {
    %i = stablehlo.constant dense<9> : tensor<1xi32>
    %t = stablehlo.tanh %u : tensor<f32>
    %r = "stablehlo.scatter"(%o, %i, %t) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %a : tensor<f32>
    }) : (tensor<8xf32>, tensor<1xi32>, tensor<f32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
}
