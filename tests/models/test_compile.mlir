// ----- TEXT
func.func @f(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<16x16xf32>)
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%c : memref<16x16xf32>)
  return
}
// ----- SOFTMAX
func.func @f(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  linalg.softmax dimension(1) ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  return
}
// ----- SQUARE
func.func @square(%x: tensor<SIZExSIZExf32>MORE) -> tensor<SIZExSIZExf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<SIZExSIZExf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<SIZExSIZExf32>) -> tensor<SIZExSIZExf32>
  %y = linalg.matmul ins(%x, %x : tensor<SIZExSIZExf32>, tensor<SIZExSIZExf32>)
    outs(%zeros : tensor<SIZExSIZExf32>) -> tensor<SIZExSIZExf32>
  return %y : tensor<SIZExSIZExf32>
}
// ----- SPELLED
#x = affine_map<(m, n, k) -> (m, k)>
#transposed = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
!in = tensor<8x12xf32>
!out = tensor<8x8xf32>
func.func @f(%x: !in, %y: !in, %zeros: !out) -> (!in, !in, !in, !in, !in, !out) {
  %to = tensor.empty() : !in
  %tiles = tensor.empty() : tensor<2x3x4x4xf32>
  %sum = linalg.add ins(%x, %y : !in, !in) outs(%to : !in) -> !in
  %exp = linalg.exp ins(%x : !in) outs(%to : !in) -> !in
  %max = linalg.elementwise <max_signed> ins(%x, %y : !in, !in) outs(%to : !in) -> !in
  %less = linalg.elementwise kind=#linalg.elementwise_kind<sub> ins(%x, %y : !in, !in) outs(%to : !in) -> !in
  %packed = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %tiles : !in -> tensor<2x3x4x4xf32>
  %same = linalg.unpack %packed inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %to : tensor<2x3x4x4xf32> -> !in
  %product = linalg.contract indexing_maps = [#x, #transposed, #c] ins(%x, %y : !in, !in) outs(%zeros : !out) -> !out
  return %sum, %exp, %max, %less, %same, %product : !in, !in, !in, !in, !in, !out
}
