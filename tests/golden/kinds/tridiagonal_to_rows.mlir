// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        stablehlo.compare GE
// CHECK:        stablehlo.divide
// CHECK:      stablehlo.while
// CHECK:        stablehlo.divide
// CHECK-NOT:  stablehlo.custom_call
func.func public @main(%l: tensor<4xf32>, %d: tensor<4xf32>, %u: tensor<4xf32>, %b: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<i32>) {
  %r:5 = stablehlo.custom_call @lapack_sgtsv_ffi(%l, %d, %u, %b)
    {mhlo.backend_config = {}, operand_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<i32>)
  return %r#3, %r#4 : tensor<4x2xf32>, tensor<i32>
}
