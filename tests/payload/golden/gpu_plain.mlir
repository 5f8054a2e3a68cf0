module {
  func.func @matmul(%a: memref<256x96xf16, strided<[72, 1]>> {tuner.bounds = array<i64: 200, 72>, tuner.buffer = "a"}, %b: memref<96x256xf16, strided<[136, 1]>> {tuner.bounds = array<i64: 72, 136>, tuner.buffer = "b"}, %c: memref<256x256xf32, strided<[136, 1]>> {tuner.bounds = array<i64: 200, 136>, tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<256x96xf16, strided<[72, 1]>> to tensor<256x96xf16>
    %B = bufferization.to_tensor %b restrict : memref<96x256xf16, strided<[136, 1]>> to tensor<96x256xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<256x256xf32, strided<[136, 1]>> to tensor<256x256xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%C : tensor<256x256xf32>) -> tensor<256x256xf32>
    %product = linalg.matmul
      ins(%A, %B : tensor<256x96xf16>, tensor<96x256xf16>) outs(%cleared : tensor<256x256xf32>) -> tensor<256x256xf32>
    bufferization.materialize_in_destination %product in restrict writable %c
      : (tensor<256x256xf32>, memref<256x256xf32, strided<[136, 1]>>) -> ()
    return
  }
}
