module {
  func.func @matmul(%a: memref<15x7xf16> {tuner.buffer = "a"}, %b: memref<7x31xf16> {tuner.buffer = "b"}, %bias: memref<31xf32> {tuner.buffer = "bias"}, %parts: memref<4x16x32xf32> {tuner.buffer = "parts"}, %zeroed: memref<12xi32> {tuner.buffer = "zeroed", tuner.zeroed, tuner.keeps_zeros}, %c: memref<15x31xf32> {tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<15x7xf16> to tensor<15x7xf16>
    %B = bufferization.to_tensor %b restrict : memref<7x31xf16> to tensor<7x31xf16>
    %BIAS = bufferization.to_tensor %bias restrict : memref<31xf32> to tensor<31xf32>
    %C = bufferization.to_tensor %c restrict writable : memref<15x31xf32> to tensor<15x31xf32>
    %between = tensor.empty() : tensor<15x31xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%between : tensor<15x31xf32>) -> tensor<15x31xf32>
    %product = linalg.matmul
      ins(%A, %B : tensor<15x7xf16>, tensor<7x31xf16>) outs(%cleared : tensor<15x31xf32>) -> tensor<15x31xf32>
    %result = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %BIAS : tensor<15x31xf32>, tensor<31xf32>) outs(%C : tensor<15x31xf32>) {
    ^bb0(%sum: f32, %shift: f32, %old: f32):
      %shifted = arith.addf %sum, %shift : f32
      %positive = arith.maximumf %shifted, %zero : f32
      linalg.yield %positive : f32
    } -> tensor<15x31xf32>
    bufferization.materialize_in_destination %result in restrict writable %c
      : (tensor<15x31xf32>, memref<15x31xf32>) -> ()
    return
  }
}
