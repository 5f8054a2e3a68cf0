module {
  func.func @matmul(%a: memref<16x8xf32> {tuner.buffer = "a"}, %b: memref<32x8xf32> {tuner.buffer = "b"}, %c: memref<16x32xf32> {tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<16x8xf32> to tensor<16x8xf32>
    %B = bufferization.to_tensor %b restrict : memref<32x8xf32> to tensor<32x8xf32>
    %C = bufferization.to_tensor %c restrict writable : memref<16x32xf32> to tensor<16x32xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%C : tensor<16x32xf32>) -> tensor<16x32xf32>
    %product = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<16x8xf32>, tensor<32x8xf32>) outs(%cleared : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %product in restrict writable %c
      : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
    return
  }
}
