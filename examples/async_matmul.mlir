// One matmul of host memory: copied to the GPU, multiplied there, copied back, all of it asynchronous.
// After the asynchronous matmul of buddy-mlir's GPU examples (5376 x 2048 x 5376 there).
//
//   tuner run examples/async_matmul.mlir --target simulator --trace --compare
module {
  func.func @matmul(%a: memref<84x32xf32>, %b: memref<32x84xf32>, %c: memref<84x84xf32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%c : memref<84x84xf32>)
    linalg.matmul ins(%a, %b : memref<84x32xf32>, memref<32x84xf32>) outs(%c : memref<84x84xf32>)
    return
  }
}
