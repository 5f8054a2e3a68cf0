// ----- LOOP
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<4xf32> {
    %more = arith.addf %sum, %x : tensor<4xf32>
    scf.yield %more : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
// ----- LAYERS
#whole = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<29x43xi8>) -> tensor<29x150xf32> {
  %zero = arith.constant 0 : i32
  %w1 = arith.constant dense<W1> : tensor<43x230xi8>
  %w2 = arith.constant dense<W2> : tensor<230x150xi8>
  %s = arith.constant dense<S> : tensor<150xf32>
  %b = arith.constant dense<B> : tensor<150xf32>
  %p_e = tensor.empty() : tensor<29x230xi32>
  %p_z = linalg.fill ins(%zero : i32) outs(%p_e : tensor<29x230xi32>) -> tensor<29x230xi32>
  %p = linalg.matmul ins(%x, %w1 : tensor<29x43xi8>, tensor<43x230xi8>) outs(%p_z : tensor<29x230xi32>) -> tensor<29x230xi32>
  %h_e = tensor.empty() : tensor<29x230xi8>
  %h = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<29x230xi32>) outs(%h_e : tensor<29x230xi8>) {
  ^bb0(%v: i32, %o: i8):
    %scale = arith.constant 0.0078125 : f32
    %least = arith.constant -128.0 : f32
    %greatest = arith.constant 127.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %scale : f32
    %r = math.roundeven %g : f32
    %u = arith.maximumf %r, %least : f32
    %t = arith.minimumf %u, %greatest : f32
    %q = arith.fptosi %t : f32 to i8
    linalg.yield %q : i8
  } -> tensor<29x230xi8>
  %q_e = tensor.empty() : tensor<29x150xi32>
  %q_z = linalg.fill ins(%zero : i32) outs(%q_e : tensor<29x150xi32>) -> tensor<29x150xi32>
  %q = linalg.matmul ins(%h, %w2 : tensor<29x230xi8>, tensor<230x150xi8>) outs(%q_z : tensor<29x150xi32>) -> tensor<29x150xi32>
  %y_e = tensor.empty() : tensor<29x150xf32>
  %y = linalg.generic {indexing_maps = [#whole, #column, #column, #whole],
    iterator_types = ["parallel", "parallel"]}
    ins(%q, %s, %b : tensor<29x150xi32>, tensor<150xf32>, tensor<150xf32>)
    outs(%y_e : tensor<29x150xf32>) {
  ^bb0(%v: i32, %by: f32, %more: f32, %o: f32):
    %c0 = arith.constant 0.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %by : f32
    %t = arith.addf %g, %more : f32
    %r = arith.maximumf %t, %c0 : f32
    linalg.yield %r : f32
  } -> tensor<29x150xf32>
  return %y : tensor<29x150xf32>
}
// ----- LINEAR
#whole = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<5x4xf32>) -> tensor<5x6xf32> {
  %w = arith.constant dense_resource<w> : tensor<6x4xf32>
  %zero = arith.constant 0.0 : f32
  %turned = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x4xf32>) outs(%turned : tensor<4x6xf32>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<5x6xf32>)
    -> tensor<5x6xf32>
  %z = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<5x6xf32>) outs(%empty : tensor<5x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<5x6xf32>
  return %z : tensor<5x6xf32>
}
{-#
  dialect_resources: {
    builtin: {
      w: "0x04000000DATA"
    }
  }
#-}
// ----- PAIR

#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%x: tensor<8x16xf32>, %a: tensor<16x32xf32>, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x32xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
    %gate = linalg.matmul ins(%x, %a : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %up = linalg.matmul ins(%x, %b : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<8x32xf32>, tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
    } -> tensor<8x32xf32>
    return %r : tensor<8x32xf32>
  }
}
