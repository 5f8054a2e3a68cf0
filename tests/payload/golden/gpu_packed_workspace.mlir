module {
  func.func @pack_a(%source: memref<15x7xf16> {tuner.buffer = "a"}, %c: memref<15x8xf16> {tuner.buffer = "packed_a"}) {
    %zero = arith.constant 0.0 : f16
    %SOURCE = bufferization.to_tensor %source restrict : memref<15x7xf16> to tensor<15x7xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<15x8xf16> to tensor<15x8xf16>
    %padded = tensor.pad %SOURCE low[0, 0] high[0, 1] {
    ^bb0(%row: index, %column: index):
      tensor.yield %zero : f16
    } : tensor<15x7xf16> to tensor<15x8xf16>
    %copied = linalg.copy ins(%padded : tensor<15x8xf16>)
      outs(%C : tensor<15x8xf16>) -> tensor<15x8xf16>
    bufferization.materialize_in_destination %copied in restrict writable %c
      : (tensor<15x8xf16>, memref<15x8xf16>) -> ()
    return
  }
  func.func @pack_b(%source: memref<7x31xf16> {tuner.buffer = "b"}, %c: memref<7x32xf16> {tuner.buffer = "packed_b"}) {
    %zero = arith.constant 0.0 : f16
    %SOURCE = bufferization.to_tensor %source restrict : memref<7x31xf16> to tensor<7x31xf16>
    %C = bufferization.to_tensor %c restrict writable : memref<7x32xf16> to tensor<7x32xf16>
    %padded = tensor.pad %SOURCE low[0, 0] high[0, 1] {
    ^bb0(%row: index, %column: index):
      tensor.yield %zero : f16
    } : tensor<7x31xf16> to tensor<7x32xf16>
    %copied = linalg.copy ins(%padded : tensor<7x32xf16>)
      outs(%C : tensor<7x32xf16>) -> tensor<7x32xf16>
    bufferization.materialize_in_destination %copied in restrict writable %c
      : (tensor<7x32xf16>, memref<7x32xf16>) -> ()
    return
  }
  func.func @matmul(%a: memref<15x8xf16> {tuner.buffer = "packed_a"}, %b: memref<7x32xf16> {tuner.buffer = "packed_b"}, %c: memref<16x32xf32> {tuner.buffer = "workspace"}) {
    %zero = arith.constant 0.0 : f32
    %a_part = memref.subview %a[0, 0] [15, 7] [1, 1] : memref<15x8xf16> to memref<15x7xf16, strided<[8, 1]>>
    %A = bufferization.to_tensor %a_part restrict : memref<15x7xf16, strided<[8, 1]>> to tensor<15x7xf16>
    %b_part = memref.subview %b[0, 0] [7, 31] [1, 1] : memref<7x32xf16> to memref<7x31xf16, strided<[32, 1]>>
    %B = bufferization.to_tensor %b_part restrict : memref<7x31xf16, strided<[32, 1]>> to tensor<7x31xf16>
    %c_part = memref.subview %c[0, 0] [15, 31] [1, 1] : memref<16x32xf32> to memref<15x31xf32, strided<[32, 1]>>
    %C = bufferization.to_tensor %c_part restrict writable : memref<15x31xf32, strided<[32, 1]>> to tensor<15x31xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%C : tensor<15x31xf32>) -> tensor<15x31xf32>
    %product = linalg.matmul
      ins(%A, %B : tensor<15x7xf16>, tensor<7x31xf16>) outs(%cleared : tensor<15x31xf32>) -> tensor<15x31xf32>
    bufferization.materialize_in_destination %product in restrict writable %c_part
      : (tensor<15x31xf32>, memref<15x31xf32, strided<[32, 1]>>) -> ()
    return
  }
  func.func @reduce(%slices: memref<4x16x32xf32> {tuner.buffer = "workspace"}, %bias: memref<31xf32> {tuner.buffer = "bias"}, %c: memref<15x31xf32> {tuner.buffer = "c"}) {
    %zero = arith.constant 0.0 : f32
    %slices_part = memref.subview %slices[0, 0, 0] [4, 15, 31] [1, 1, 1] : memref<4x16x32xf32> to memref<4x15x31xf32, strided<[512, 32, 1]>>
    %SLICES = bufferization.to_tensor %slices_part restrict : memref<4x15x31xf32, strided<[512, 32, 1]>> to tensor<4x15x31xf32>
    %BIAS = bufferization.to_tensor %bias restrict : memref<31xf32> to tensor<31xf32>
    %C = bufferization.to_tensor %c restrict writable : memref<15x31xf32> to tensor<15x31xf32>
    %between = tensor.empty() : tensor<15x31xf32>
    %cleared = linalg.fill ins(%zero : f32) outs(%between : tensor<15x31xf32>) -> tensor<15x31xf32>
    %product = linalg.generic {indexing_maps = [affine_map<(s, m, n) -> (s, m, n)>, affine_map<(s, m, n) -> (m, n)>],
      iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%SLICES : tensor<4x15x31xf32>) outs(%cleared : tensor<15x31xf32>) {
    ^bb0(%part: f32, %sum: f32):
      %more = arith.addf %sum, %part : f32
      linalg.yield %more : f32
    } -> tensor<15x31xf32>
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
