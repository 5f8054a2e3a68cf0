// ----- PAYLOAD

func.func @layer(%a: tensor<64x64xf32>, %b: tensor<64x128xf32>, %c: tensor<64x128xf32>)
    -> tensor<64x128xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x128xf32>)
    outs(%c : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %d : tensor<64x128xf32>
}
func.func @other(%a: tensor<8x64xf32>, %b: tensor<64x128xf32>, %c: tensor<8x128xf32>) -> tensor<8x128xf32> {
  %d = linalg.matmul ins(%a, %b : tensor<8x64xf32>, tensor<64x128xf32>)
    outs(%c : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %d : tensor<8x128xf32>
}
