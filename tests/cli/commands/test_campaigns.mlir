// ----- MODEL
func.func @layer(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>, %c: tensor<8x4xf32>,
    %d: tensor<?x4xf32>, %e: tensor<?x16xf32>) -> (tensor<8x4xf32>, tensor<?x4xf32>) {
  %0 = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x4xf32>)
    outs(%c : tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = linalg.matmul ins(%e, %b : tensor<?x16xf32>, tensor<16x4xf32>)
    outs(%d : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<?x4xf32>
}
