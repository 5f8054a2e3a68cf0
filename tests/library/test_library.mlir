// ----- ON_MEMREFS
func.func @on_memrefs(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>) {
  linalg.matmul ins(%a, %b : memref<24x32xf32>, memref<32x64xf32>) outs(%c : memref<24x64xf32>)
  return
}
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
