// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        stablehlo.sqrt
// CHECK:        stablehlo.concatenate
// CHECK:        stablehlo.concatenate
// CHECK-NOT:  stablehlo.custom_call
func.func public @main(%x0: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %r:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%x0)
    {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]}
    : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)
  return %r#1, %r#2 : tensor<4xf32>, tensor<i32>
}
