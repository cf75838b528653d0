// options: named=False
// A loop that does not count is scf.while, branches are scf.if, nested where there are more than two, the last one where
// the index is none of the others; a single one is always taken.
// CHECK-LABEL: func.func @main
// CHECK: scf.while (%{{.*}} = %arg0) : (tensor<i32>) -> tensor<i32> {
// CHECK: scf.condition
// CHECK: } do {
// CHECK: scf.yield
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: scf.if %[[FIRST]] -> (tensor<i32>) {
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %[[INDEX:.*]], %c0_i32
// CHECK: scf.if %[[ZERO]] -> (tensor<i32>) {
// CHECK: } else {
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[INDEX]], %c1_i32
// CHECK: scf.if %[[ONE]] -> (tensor<i32>) {
// CHECK: } else {
// CHECK-NOT: stablehlo
func.func @main(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%x = %a) : tensor<i32>
    cond {
      %s = stablehlo.multiply %x, %x : tensor<i32>
      %p = stablehlo.compare LT, %s, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %x, %x : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }
  %1 = "stablehlo.case"(%a) ({
    stablehlo.return %0 : tensor<i32>
  }, {
    %e = stablehlo.subtract %b, %0 : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  %2 = "stablehlo.case"(%b) ({
    %f = stablehlo.multiply %1, %0 : tensor<i32>
    stablehlo.return %f : tensor<i32>
  }, {
    %g = stablehlo.subtract %1, %0 : tensor<i32>
    stablehlo.return %g : tensor<i32>
  }, {
    %d = stablehlo.add %1, %0 : tensor<i32>
    stablehlo.return %d : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  %3 = "stablehlo.case"(%b) ({
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<i32>) -> tensor<i32>
  return %3 : tensor<i32>
}
