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
