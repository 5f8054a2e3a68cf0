// ----- SQUARE
func.func @square(%x: tensor<SIZExSIZExf32>MORE) -> tensor<SIZExSIZExf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<SIZExSIZExf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<SIZExSIZExf32>) -> tensor<SIZExSIZExf32>
  %y = linalg.matmul ins(%x, %x : tensor<SIZExSIZExf32>, tensor<SIZExSIZExf32>)
    outs(%zeros : tensor<SIZExSIZExf32>) -> tensor<SIZExSIZExf32>
  return %y : tensor<SIZExSIZExf32>
}
