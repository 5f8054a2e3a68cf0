// ----- PAYLOAD

func.func @f(%a: tensor<1x8x64xf32>, %b: tensor<1x64x32xf32>) -> tensor<1x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x8x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<1x8x64xf32>, tensor<1x64x32xf32>)
    outs(%zeros : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
  return %c : tensor<1x8x32xf32>
}
// ----- OF_TWO

func.func @f(%a: tensor<2x8x64xf32>, %b: tensor<2x64x32xf32>, %c: tensor<2x8x32xf32>) -> tensor<2x8x32xf32> {
  %0 = linalg.batch_matmul ins(%a, %b : tensor<2x8x64xf32>, tensor<2x64x32xf32>)
    outs(%c : tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  return %0 : tensor<2x8x32xf32>
}
