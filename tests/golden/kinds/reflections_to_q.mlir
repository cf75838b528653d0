// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        stablehlo.reduce({{.*}}) applies stablehlo.add
// CHECK:        stablehlo.multiply %{{.*}} : tensor<2xf32>
// CHECK:        %[[OUTER:.*]] = stablehlo.multiply
// CHECK-NEXT:   stablehlo.subtract %{{.*}}, %[[OUTER]]
// CHECK-NOT:  stablehlo.custom_call
func.func public @main(%x0: tensor<3x2xf32>, %x1: tensor<2xf32>)
    -> (tensor<3x2xf32>) {
  %r:1 = stablehlo.custom_call @lapack_sorgqr_ffi(%x0, %x1)
    {mhlo.backend_config = {}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]}
    : (tensor<3x2xf32>, tensor<2xf32>) -> (tensor<3x2xf32>)
  return %r#0 : tensor<3x2xf32>
}
