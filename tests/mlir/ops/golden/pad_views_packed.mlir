#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @pack_a(%arg0: memref<15x7xf16> {tuner.buffer = "a"}, %arg1: memref<15x8xf16> {tuner.buffer = "packed_a"}) {
    %cst = arith.constant 0.000000e+00 : f16
    %0 = bufferization.to_tensor %arg0 restrict : memref<15x7xf16> to tensor<15x7xf16>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<15x8xf16> to tensor<15x8xf16>
    %padded = tensor.pad %0 low[0, 0] high[0, 1] {
    ^bb0(%arg2: index, %arg3: index):
      tensor.yield %cst : f16
    } : tensor<15x7xf16> to tensor<15x8xf16>
    %2 = linalg.copy ins(%padded : tensor<15x8xf16>) outs(%1 : tensor<15x8xf16>) -> tensor<15x8xf16>
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<15x8xf16>, memref<15x8xf16>) -> ()
    return
  }
  func.func @pack_b(%arg0: memref<7x31xf16> {tuner.buffer = "b"}, %arg1: memref<7x32xf16> {tuner.buffer = "packed_b"}) {
    %cst = arith.constant 0.000000e+00 : f16
    %0 = bufferization.to_tensor %arg0 restrict : memref<7x31xf16> to tensor<7x31xf16>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<7x32xf16> to tensor<7x32xf16>
    %padded = tensor.pad %0 low[0, 0] high[0, 1] {
    ^bb0(%arg2: index, %arg3: index):
      tensor.yield %cst : f16
    } : tensor<7x31xf16> to tensor<7x32xf16>
    %2 = linalg.copy ins(%padded : tensor<7x32xf16>) outs(%1 : tensor<7x32xf16>) -> tensor<7x32xf16>
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<7x32xf16>, memref<7x32xf16>) -> ()
    return
  }
  func.func @f(%arg0: memref<16x64xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 15, 8>, tuner.buffer = "packed_a"}, %arg1: memref<64x32xf16> {tuner.bounds = array<i64: 7, 32>, tuner.buffer = "packed_b"}, %arg2: memref<16x32xf32> {tuner.buffer = "workspace"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x64xf16, strided<[8, 1]>> to tensor<16x64xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x32xf16> to tensor<64x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<16x32xf32> to tensor<16x32xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %4 = linalg.matmul ins(%0, %1 : tensor<16x64xf16>, tensor<64x32xf16>) outs(%3 : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<16x32xf32>, memref<16x32xf32>) -> ()
    return
  }
  func.func @reduce(%arg0: memref<4x16x32xf32> {tuner.buffer = "workspace"}, %arg1: memref<31xf32> {tuner.buffer = "bias"}, %arg2: memref<15x31xf32> {tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %subview = memref.subview %arg0[0, 0, 0] [4, 15, 31] [1, 1, 1] : memref<4x16x32xf32> to memref<4x15x31xf32, strided<[512, 32, 1]>>
    %0 = bufferization.to_tensor %subview restrict : memref<4x15x31xf32, strided<[512, 32, 1]>> to tensor<4x15x31xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<31xf32> to tensor<31xf32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<15x31xf32> to tensor<15x31xf32>
    %3 = tensor.empty() : tensor<15x31xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<15x31xf32>) -> tensor<15x31xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "parallel", "parallel"]} ins(%0 : tensor<4x15x31xf32>) outs(%4 : tensor<15x31xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %out, %in : f32
      linalg.yield %7 : f32
    } -> tensor<15x31xf32>
    %6 = linalg.generic {indexing_maps = [#map2, #map3, #map2], iterator_types = ["parallel", "parallel"]} ins(%5, %1 : tensor<15x31xf32>, tensor<31xf32>) outs(%2 : tensor<15x31xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.addf %in, %in_0 : f32
      %8 = arith.maximumf %7, %cst : f32
      linalg.yield %8 : f32
    } -> tensor<15x31xf32>
    bufferization.materialize_in_destination %6 in restrict writable %arg2 : (tensor<15x31xf32>, memref<15x31xf32>) -> ()
    return
  }
}
