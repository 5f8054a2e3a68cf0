#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @f(%arg0: memref<16x64xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %arg1: memref<16x64xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 15, 8>, tuner.buffer = "packed_a"}) {
    %cst = arith.constant 0.000000e+00 : f16
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x64xf16, strided<[7, 1]>> to tensor<16x64xf16>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<16x64xf16, strided<[8, 1]>> to tensor<16x64xf16>
    %2 = linalg.copy ins(%0 : tensor<16x64xf16>) outs(%1 : tensor<16x64xf16>) -> tensor<16x64xf16>
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<16x64xf16>, memref<16x64xf16, strided<[8, 1]>>) -> ()
    return
  }
  func.func @matmul(%arg0: memref<15x8xf16> {tuner.buffer = "packed_a"}, %arg1: memref<7x31xf16> {tuner.buffer = "b"}, %arg2: memref<31xf32> {tuner.buffer = "bias"}, %arg3: memref<15x31xf32> {tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %subview = memref.subview %arg0[0, 0] [15, 7] [1, 1] : memref<15x8xf16> to memref<15x7xf16, strided<[8, 1]>>
    %0 = bufferization.to_tensor %subview restrict : memref<15x7xf16, strided<[8, 1]>> to tensor<15x7xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<7x31xf16> to tensor<7x31xf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<31xf32> to tensor<31xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<15x31xf32> to tensor<15x31xf32>
    %4 = tensor.empty() : tensor<15x31xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<15x31xf32>) -> tensor<15x31xf32>
    %6 = linalg.matmul ins(%0, %1 : tensor<15x7xf16>, tensor<7x31xf16>) outs(%5 : tensor<15x31xf32>) -> tensor<15x31xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %2 : tensor<15x31xf32>, tensor<31xf32>) outs(%3 : tensor<15x31xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.addf %in, %in_0 : f32
      %9 = arith.maximumf %8, %cst : f32
      linalg.yield %9 : f32
    } -> tensor<15x31xf32>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<15x31xf32>, memref<15x31xf32>) -> ()
    return
  }
}
