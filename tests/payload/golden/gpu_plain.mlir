module {
  func.func @matmul(%a: memref<200x72xf16> {tuner.buffer = "a"}, %b: memref<72x136xf16> {tuner.buffer = "b"}, %c: memref<200x136xf32> {tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<200x72xf16> to tensor<200x72xf16>
    %B = bufferization.to_tensor %b restrict : memref<72x136xf16> to tensor<72x136xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<200x136xf32> to tensor<200x136xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%C : tensor<200x136xf32>) -> tensor<200x136xf32>
    %product = linalg.matmul
      ins(%A, %B : tensor<200x72xf16>, tensor<72x136xf16>) outs(%cleared : tensor<200x136xf32>) -> tensor<200x136xf32>
    bufferization.materialize_in_destination %product in restrict writable %c
      : (tensor<200x136xf32>, memref<200x136xf32>) -> ()
    return
  }
}
