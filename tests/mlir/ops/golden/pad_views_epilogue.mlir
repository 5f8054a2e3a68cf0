#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @f(%arg0: memref<16x64xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %arg1: memref<64x32xf16, strided<[31, 1]>> {tuner.bounds = array<i64: 7, 31>, tuner.buffer = "b"}, %arg2: memref<16x32xf32, strided<[31, 1]>> {tuner.bounds = array<i64: 15, 31>, tuner.buffer = "other0"}, %arg3: memref<32xf32> {tuner.bounds = array<i64: 31>, tuner.buffer = "other1"}, %arg4: memref<16xf32> {tuner.bounds = array<i64: 15>, tuner.buffer = "other2"}, %arg5: memref<16x32xf16, strided<[31, 1]>> {tuner.bounds = array<i64: 15, 31>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x64xf16, strided<[7, 1]>> to tensor<16x64xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x32xf16, strided<[31, 1]>> to tensor<64x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<16x32xf32, strided<[31, 1]>> to tensor<16x32xf32>
    %3 = bufferization.to_tensor %arg3 restrict : memref<32xf32> to tensor<32xf32>
    %4 = bufferization.to_tensor %arg4 restrict : memref<16xf32> to tensor<16xf32>
    %5 = bufferization.to_tensor %arg5 restrict writable : memref<16x32xf16, strided<[31, 1]>> to tensor<16x32xf16>
    %6 = tensor.empty() : tensor<16x32xf32>
    %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %8 = linalg.matmul ins(%0, %1 : tensor<16x64xf16>, tensor<64x32xf16>) outs(%7 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map, #map1, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%8, %2, %3, %4 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<32xf32>, tensor<16xf32>) outs(%5 : tensor<16x32xf16>) {
    ^bb0(%in: f32, %in_0: f32, %in_1: f32, %in_2: f32, %out: f16):
      linalg.yield %out : f16
    } -> tensor<16x32xf16>
    bufferization.materialize_in_destination %9 in restrict writable %arg5 : (tensor<16x32xf16>, memref<16x32xf16, strided<[31, 1]>>) -> ()
    return
  }
}
