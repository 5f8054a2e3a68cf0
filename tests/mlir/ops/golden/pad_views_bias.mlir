#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @f(%arg0: memref<16x64xf16, strided<[7, 1]>> {tuner.bounds = array<i64: 15, 7>, tuner.buffer = "a"}, %arg1: memref<64x32xf16, strided<[31, 1]>> {tuner.bounds = array<i64: 7, 31>, tuner.buffer = "b"}, %arg2: memref<32xf32> {tuner.bounds = array<i64: 31>, tuner.buffer = "bias"}, %arg3: memref<16x32xf32, strided<[31, 1]>> {tuner.bounds = array<i64: 15, 31>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<16x64xf16, strided<[7, 1]>> to tensor<16x64xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x32xf16, strided<[31, 1]>> to tensor<64x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<32xf32> to tensor<32xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<16x32xf32, strided<[31, 1]>> to tensor<16x32xf32>
    %4 = tensor.empty() : tensor<16x32xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %6 = linalg.matmul ins(%0, %1 : tensor<16x64xf16>, tensor<64x32xf16>) outs(%5 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %2 : tensor<16x32xf32>, tensor<32xf32>) outs(%3 : tensor<16x32xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.addf %in, %in_0 : f32
      %9 = arith.maximumf %8, %cst : f32
      linalg.yield %9 : f32
    } -> tensor<16x32xf32>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<16x32xf32>, memref<16x32xf32, strided<[31, 1]>>) -> ()
    return
  }
}
