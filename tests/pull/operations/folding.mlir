func.func public @main(%x: tensor<3x4xi8>, %y: tensor<4x2xi8>, %b: tensor<3x4xi1>, %f: tensor<3x4xf32>, %g: tensor<3x4x2xf32>, %h: tensor<3x40xi32>, %at: tensor<6x1xi32>, %u: tensor<6xi32>, %t: tensor<2x40xi1>) -> (tensor<3xi8>, tensor<i8>, tensor<4xi1>, tensor<3x2xi32>, tensor<3xf32>, tensor<f32>, tensor<3x2xf32>, tensor<3xi32>, tensor<i32>, tensor<3xi32>, tensor<5xi32>, tensor<2xi1>, tensor<2xi1>, tensor<4xf32>, tensor<4xf32>, tensor<3xi32>, tensor<3xi32>) {
  %z = stablehlo.constant dense<0> : tensor<i8>
  %m = stablehlo.constant dense<-128> : tensor<i8>
  %o = stablehlo.constant dense<false> : tensor<i1>
  %fz = stablehlo.constant dense<0.0> : tensor<f32>
  %lo = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %iz = stablehlo.constant dense<-7> : tensor<i32>
  %sum = stablehlo.constant dense<0> : tensor<i32>
  %ones = stablehlo.constant dense<-1> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xi8>, tensor<i8>) -> tensor<3xi8>
  %1 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<3x4xi8>, tensor<i8>) -> tensor<i8>
  %2 = stablehlo.reduce(%b init: %o) applies stablehlo.or across dimensions = [0] : (tensor<3x4xi1>, tensor<i1>) -> tensor<4xi1>
  %3 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xi8>, tensor<4x2xi8>) -> tensor<3x2xi32>
  %4 = stablehlo.reduce(%f init: %fz) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %5 = stablehlo.reduce(%f init: %lo) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<f32>
  %6 = stablehlo.dot_general %f, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<3x4xf32>, tensor<3x4x2xf32>) -> tensor<3x2xf32>
  %7 = stablehlo.reduce(%h init: %iz) applies stablehlo.maximum across dimensions = [1] : (tensor<3x40xi32>, tensor<i32>) -> tensor<3xi32>
  %8 = stablehlo.reduce(%h init: %ones) applies stablehlo.and across dimensions = [0, 1] : (tensor<3x40xi32>, tensor<i32>) -> tensor<i32>
  %9 = stablehlo.reduce(%h init: %sum) applies stablehlo.add across dimensions = [1] : (tensor<3x40xi32>, tensor<i32>) -> tensor<3xi32>
  %base = stablehlo.slice %h [0:1, 0:5] : (tensor<3x40xi32>) -> tensor<1x5xi32>
  %row = stablehlo.reshape %base : (tensor<1x5xi32>) -> tensor<5xi32>
  %10 = "stablehlo.scatter"(%row, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<i32>, %d: tensor<i32>):
    %e = stablehlo.add %c, %d : tensor<i32>
    stablehlo.return %e : tensor<i32>
  }) : (tensor<5xi32>, tensor<6x1xi32>, tensor<6xi32>) -> tensor<5xi32>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %11 = stablehlo.reduce(%t init: %o) applies stablehlo.or across dimensions = [1] : (tensor<2x40xi1>, tensor<i1>) -> tensor<2xi1>
  %12 = stablehlo.reduce(%t init: %yes) applies stablehlo.and across dimensions = [1] : (tensor<2x40xi1>, tensor<i1>) -> tensor<2xi1>
  // one number goes to some of the places, and then two to one of them
  %first = stablehlo.slice %f [0:1, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %line = stablehlo.reshape %first : (tensor<1x4xf32>) -> tensor<4xf32>
  %last = stablehlo.slice %f [0:3, 3:4] : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %column = stablehlo.reshape %last : (tensor<3x1xf32>) -> tensor<3xf32>
  %number = stablehlo.iota dim = 0 : tensor<3x1xi32>
  %back = stablehlo.constant dense<-1> : tensor<3x1xi32>
  %two = stablehlo.constant dense<2> : tensor<3x1xi32>
  %twice = stablehlo.multiply %number, %two : tensor<3x1xi32>
  %apart = stablehlo.add %twice, %back : tensor<3x1xi32>
  %13 = "stablehlo.scatter"(%line, %apart, %column) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %e = stablehlo.subtract %c, %d : tensor<f32>
    stablehlo.return %e : tensor<f32>
  }) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>
  %halves = stablehlo.divide %number, %two : tensor<3x1xi32>
  %14 = "stablehlo.scatter"(%line, %halves, %column) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %e = stablehlo.subtract %c, %d : tensor<f32>
    stablehlo.return %e : tensor<f32>
  }) : (tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<4xf32>
  // elements that are the start itself
  %start = stablehlo.broadcast_in_dim %iz, dims = [] : (tensor<i32>) -> tensor<3x40xi32>
  %above = stablehlo.compare GT, %h, %start, SIGNED : (tensor<3x40xi32>, tensor<3x40xi32>) -> tensor<3x40xi1>
  %few = stablehlo.select %above, %start, %h : tensor<3x40xi1>, tensor<3x40xi32>
  %15 = stablehlo.reduce(%few init: %iz) applies stablehlo.minimum across dimensions = [1] : (tensor<3x40xi32>, tensor<i32>) -> tensor<3xi32>
  %16 = stablehlo.reduce(%few init: %iz) applies stablehlo.add across dimensions = [1] : (tensor<3x40xi32>, tensor<i32>) -> tensor<3xi32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16 : tensor<3xi8>, tensor<i8>, tensor<4xi1>, tensor<3x2xi32>, tensor<3xf32>, tensor<f32>, tensor<3x2xf32>, tensor<3xi32>, tensor<i32>, tensor<3xi32>, tensor<5xi32>, tensor<2xi1>, tensor<2xi1>, tensor<4xf32>, tensor<4xf32>, tensor<3xi32>, tensor<3xi32>
}
