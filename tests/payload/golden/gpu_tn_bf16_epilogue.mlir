module {
  func.func @matmul(%a: memref<16x16xbf16, strided<[15, 1]>> {tuner.bounds = array<i64: 7, 15>, tuner.buffer = "a"}, %b: memref<16x32xbf16, strided<[30, 1]>> {tuner.bounds = array<i64: 7, 30>, tuner.buffer = "b"}, %bias: memref<32xbf16> {tuner.bounds = array<i64: 30>, tuner.buffer = "bias"}, %c: memref<16x32xbf16, strided<[30, 1]>> {tuner.bounds = array<i64: 15, 30>, tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<16x16xbf16, strided<[15, 1]>> to tensor<16x16xbf16>
    %B = bufferization.to_tensor %b restrict : memref<16x32xbf16, strided<[30, 1]>> to tensor<16x32xbf16>
    %BIAS = bufferization.to_tensor %bias restrict : memref<32xbf16> to tensor<32xbf16>
    %C = bufferization.to_tensor %c restrict writable : memref<16x32xbf16, strided<[30, 1]>> to tensor<16x32xbf16>
    %between = tensor.empty() : tensor<16x32xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%between : tensor<16x32xf32>) -> tensor<16x32xf32>
    %product = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%A, %B : tensor<16x16xbf16>, tensor<16x32xbf16>) outs(%cleared : tensor<16x32xf32>) -> tensor<16x32xf32>
    %result = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %BIAS : tensor<16x32xf32>, tensor<32xbf16>) outs(%C : tensor<16x32xbf16>) {
    ^bb0(%sum: f32, %shift: bf16, %old: bf16):
      %wide = arith.extf %shift : bf16 to f32
      %shifted = arith.addf %sum, %wide : f32
      %positive = arith.maximumf %shifted, %zero : f32
      %narrow = arith.truncf %positive : f32 to bf16
      linalg.yield %narrow : bf16
    } -> tensor<16x32xbf16>
    bufferization.materialize_in_destination %result in restrict writable %c
      : (tensor<16x32xbf16>, memref<16x32xbf16, strided<[30, 1]>>) -> ()
    return
  }
}
