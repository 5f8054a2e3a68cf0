// ----- PAYLOAD
func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %c: tensor<16x16xf32>)
    -> tensor<16x16xf32> {
  %first = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x16xf32>)
    outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %second = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x16xf32>)
    outs(%first : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %second : tensor<16x16xf32>
}
