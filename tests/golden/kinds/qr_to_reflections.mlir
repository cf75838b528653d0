// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK:        %[[NORM:.*]] = stablehlo.sqrt
// CHECK:        stablehlo.negate
// CHECK:        stablehlo.reduce({{.*}}) applies stablehlo.add
// CHECK-NOT:  stablehlo.custom_call
func.func public @main(%x0: tensor<3x2xf32>)
    -> (tensor<3x2xf32>, tensor<2xf32>) {
  %r:2 = stablehlo.custom_call @lapack_sgeqrf_ffi(%x0)
    {mhlo.backend_config = {}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>]}
    : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<3x2xf32>, tensor<2xf32>
}
