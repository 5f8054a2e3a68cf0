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
