// Two matmuls that need nothing of each other, and their sum: two chains on two streams, joined before the add.
//
//   tuner run examples/two_matmuls.mlir --target simulator --trace --compare
//   tuner tune examples/two_matmuls.mlir --trials 20
module {
  func.func @main(%a: tensor<64x128xf32>, %b: tensor<128x64xf32>,
                  %c: tensor<64x96xf32>, %d: tensor<96x64xf32>) -> tensor<64x64xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<64x64xf32>
    %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
    %ab = linalg.matmul ins(%a, %b : tensor<64x128xf32>, tensor<128x64xf32>)
      outs(%clear : tensor<64x64xf32>) -> tensor<64x64xf32>
    %cd = linalg.matmul ins(%c, %d : tensor<64x96xf32>, tensor<96x64xf32>)
      outs(%clear : tensor<64x64xf32>) -> tensor<64x64xf32>
    %sum = linalg.add ins(%ab, %cd : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
    return %sum : tensor<64x64xf32>
  }
}
