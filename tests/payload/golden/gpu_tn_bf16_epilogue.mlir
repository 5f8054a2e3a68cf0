module {
  func.func @matmul(%a: memref<7x15xbf16> {tuner.buffer = "a"}, %b: memref<7x30xbf16> {tuner.buffer = "b"}, %bias: memref<30xbf16> {tuner.buffer = "bias"}, %c: memref<15x30xbf16> {tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<7x15xbf16> to tensor<7x15xbf16>
    %B = bufferization.to_tensor %b restrict : memref<7x30xbf16> to tensor<7x30xbf16>
    %BIAS = bufferization.to_tensor %bias restrict : memref<30xbf16> to tensor<30xbf16>
    %C = bufferization.to_tensor %c restrict writable : memref<15x30xbf16> to tensor<15x30xbf16>
    %between = tensor.empty() : tensor<15x30xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%between : tensor<15x30xf32>) -> tensor<15x30xf32>
    %product = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<7x15xbf16>, tensor<7x30xbf16>) outs(%cleared : tensor<15x30xf32>) -> tensor<15x30xf32>
    %result = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %BIAS : tensor<15x30xf32>, tensor<30xbf16>) outs(%C : tensor<15x30xbf16>) {
    ^bb0(%sum: f32, %shift: bf16, %old: bf16):
      %wide = arith.extf %shift : bf16 to f32
      %shifted = arith.addf %sum, %wide : f32
      %positive = arith.maximumf %shifted, %zero : f32
      %rounded = arith.truncf %positive : f32 to bf16
      linalg.yield %rounded : bf16
    } -> tensor<15x30xbf16>
    bufferization.materialize_in_destination %result in restrict writable %c
      : (tensor<15x30xbf16>, memref<15x30xbf16>) -> ()
    return
  }
}
