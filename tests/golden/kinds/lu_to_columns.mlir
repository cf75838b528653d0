// options: target=no_matrices float_mode=reassociate
// CHECK:      stablehlo.while
// CHECK:        %[[SIZES:.*]] = stablehlo.abs
// CHECK:        stablehlo.reduce({{.*}}) applies stablehlo.maximum
// CHECK:        stablehlo.reduce({{.*}}) applies stablehlo.minimum
// CHECK:        stablehlo.divide
// CHECK:        %[[OUTER:.*]] = stablehlo.multiply
// CHECK-NEXT:   stablehlo.subtract %{{.*}}, %[[OUTER]]
// CHECK-NOT:  stablehlo.custom_call
func.func public @main(%x0: tensor<3x2xf32>)
    -> (tensor<3x2xf32>, tensor<2xi32>, tensor<i32>) {
  %r:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%x0)
    {mhlo.backend_config = {}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<> : tensor<0xindex>]}
    : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2xi32>, tensor<i32>)
  return %r#0, %r#1, %r#2 : tensor<3x2xf32>, tensor<2xi32>, tensor<i32>
}
