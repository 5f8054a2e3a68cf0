// ----- TEXT
func.func @f(%a: tensor<40x16xf32>, %b: tensor<16x24xf32>,
                 %u: tensor<40x8xf32>, %v: tensor<8x24xf32>, %c: tensor<40x24xf32>) -> tensor<40x24xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x24xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<40x16xf32>, tensor<16x24xf32>)
    outs(%clear : tensor<40x24xf32>) -> tensor<40x24xf32>
  %uv = linalg.matmul ins(%u, %v : tensor<40x8xf32>, tensor<8x24xf32>)
    outs(%ab : tensor<40x24xf32>) -> tensor<40x24xf32>
  %again = linalg.matmul ins(%a, %b : tensor<40x16xf32>, tensor<16x24xf32>)
    outs(%c : tensor<40x24xf32>) -> tensor<40x24xf32>
  %sum = linalg.sub ins(%uv, %again : tensor<40x24xf32>, tensor<40x24xf32>)
    outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %sum : tensor<40x24xf32>
}
// ----- ON_BUFFERS
func.func @f(%u: memref<40x8xf32>, %v: memref<8x24xf32>, %c: memref<40x24xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%c : memref<40x24xf32>)
  linalg.matmul ins(%u, %v : memref<40x8xf32>, memref<8x24xf32>) outs(%c : memref<40x24xf32>)
  return
}
