// ----- NN

func.func @f(%a: tensor<64x32xf32>, %b: tensor<32x16xf32>, %c: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %product = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x16xf32>) outs(%c : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %product : tensor<64x16xf32>
}

// ----- WITH_MAPS

#of_k_m = affine_map<(m, n, k) -> (k, m)>
#of_m_k = affine_map<(m, n, k) -> (m, k)>
#of_k_n = affine_map<(m, n, k) -> (k, n)>
#of_n_k = affine_map<(m, n, k) -> (n, k)>
#of_m_n = affine_map<(m, n, k) -> (m, n)>
func.func @f(%a: tensor<{of_a}xf32>, %b: tensor<{of_b}xf32>, %c: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %product = linalg.matmul indexing_maps = [#of_{left}, #of_{right}, #of_m_n]
    ins(%a, %b : tensor<{of_a}xf32>, tensor<{of_b}xf32>) outs(%c : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %product : tensor<64x16xf32>
}
