#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @f(%arg0: tensor<64x32xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<64x16xf32>) -> tensor<64x16xf32> {
    %0 = tensor.empty() : tensor<32x64xf32>
    %transposed = linalg.transpose ins(%arg0 : tensor<64x32xf32>) outs(%0 : tensor<32x64xf32>) permutation = [1, 0] 
    %1 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%transposed, %arg1 : tensor<32x64xf32>, tensor<32x16xf32>) outs(%arg2 : tensor<64x16xf32>) -> tensor<64x16xf32>
    return %1 : tensor<64x16xf32>
  }
}
