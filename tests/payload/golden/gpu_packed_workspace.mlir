module {
  func.func @pack_a(%source: memref<16x64xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %c: memref<16x64xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 15, 8>, tuner.buffer = "packed_a"}) {
    %zero = arith.constant 0.0 : f16
    %SOURCE = bufferization.to_tensor %source restrict : memref<16x64xf16, strided<[7, 1]>> to tensor<16x64xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<16x64xf16, strided<[8, 1]>> to tensor<16x64xf16>
    %copied = linalg.copy ins(%SOURCE : tensor<16x64xf16>)
      outs(%C : tensor<16x64xf16>) -> tensor<16x64xf16>
    bufferization.materialize_in_destination %copied in restrict writable %c
      : (tensor<16x64xf16>, memref<16x64xf16, strided<[8, 1]>>) -> ()
    return
  }
  func.func @pack_b(%source: memref<8x64xf16, strided<[31, 1]>> {tuner.bounds = array<i64: 7, 31>, tuner.buffer = "b"}, %c: memref<8x64xf16, strided<[32, 1]>> {tuner.bounds = array<i64: 7, 32>, tuner.buffer = "packed_b"}) {
    %zero = arith.constant 0.0 : f16
    %SOURCE = bufferization.to_tensor %source restrict : memref<8x64xf16, strided<[31, 1]>> to tensor<8x64xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<8x64xf16, strided<[32, 1]>> to tensor<8x64xf16>
    %copied = linalg.copy ins(%SOURCE : tensor<8x64xf16>)
      outs(%C : tensor<8x64xf16>) -> tensor<8x64xf16>
    bufferization.materialize_in_destination %copied in restrict writable %c
      : (tensor<8x64xf16>, memref<8x64xf16, strided<[32, 1]>>) -> ()
    return
  }
  func.func @matmul(%a: memref<16x64xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 15, 8>, tuner.buffer = "packed_a"}, %b: memref<64x32xf16> {tuner.bounds = array<i64: 7, 32>, tuner.buffer = "packed_b"}, %c: memref<16x32xf32> {tuner.bounds = array<i64: 16, 32>, tuner.buffer = "workspace"}) {
    %zero = arith.constant 0.0 : f32
    %A = bufferization.to_tensor %a restrict : memref<16x64xf16, strided<[8, 1]>> to tensor<16x64xf16>
    %B = bufferization.to_tensor %b restrict : memref<64x32xf16> to tensor<64x32xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<16x32xf32> to tensor<16x32xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%C : tensor<16x32xf32>) -> tensor<16x32xf32>
    %product = linalg.matmul
      ins(%A, %B : tensor<16x64xf16>, tensor<64x32xf16>) outs(%cleared : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %product in restrict writable %c
      : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
    return
  }
  func.func @reduce(%slices: memref<4x16x32xf32> {tuner.bounds = array<i64: 4, 16, 32>, tuner.buffer = "workspace"}, %bias: memref<32xf32> {tuner.bounds = array<i64: 31>, tuner.buffer = "bias"}, %c: memref<16x32xf32, strided<[31, 1]>> {tuner.bounds = array<i64: 15, 31>, tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %SLICES = bufferization.to_tensor %slices restrict : memref<4x16x32xf32> to tensor<4x16x32xf32>
    %BIAS = bufferization.to_tensor %bias restrict : memref<32xf32> to tensor<32xf32>
    %C = bufferization.to_tensor %c restrict writable : memref<16x32xf32, strided<[31, 1]>> to tensor<16x32xf32>
    %between = tensor.empty() : tensor<16x32xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%between : tensor<16x32xf32>) -> tensor<16x32xf32>
    %product = linalg.generic {indexing_maps = [affine_map<(s, m, n) -> (s, m, n)>, affine_map<(s, m, n) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%SLICES : tensor<4x16x32xf32>) outs(%cleared : tensor<16x32xf32>) {
    ^bb0(%part: f32, %sum: f32):
      %more = arith.addf %sum, %part : f32
      linalg.yield %more : f32
    } -> tensor<16x32xf32>
    %result = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %BIAS : tensor<16x32xf32>, tensor<32xf32>) outs(%C : tensor<16x32xf32>) {
    ^bb0(%sum: f32, %shift: f32, %old: f32):
      %shifted = arith.addf %sum, %shift : f32
      %positive = arith.maximumf %shifted, %zero : f32
      linalg.yield %positive : f32
    } -> tensor<16x32xf32>
    bufferization.materialize_in_destination %result in restrict writable %c
      : (tensor<16x32xf32>, memref<16x32xf32, strided<[31, 1]>>) -> ()
    return
  }
}
