#map = affine_map<(d0, d1, d2) -> (d2, d0)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @f(%arg0: memref<64x16xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 8, 8>, tuner.buffer = "a"}, %arg1: memref<64x32xf16, strided<[8, 1]>> {tuner.bounds = array<i64: 8, 8>, tuner.buffer = "b"}, %arg2: memref<16x32xf32, strided<[8, 1]>> {tuner.bounds = array<i64: 8, 8>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<64x16xf16, strided<[8, 1]>> to tensor<64x16xf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x32xf16, strided<[8, 1]>> to tensor<64x32xf16>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<16x32xf32, strided<[8, 1]>> to tensor<16x32xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %4 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%0, %1 : tensor<64x16xf16>, tensor<64x32xf16>) outs(%3 : tensor<16x32xf32>) -> tensor<16x32xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<16x32xf32>, memref<16x32xf32, strided<[8, 1]>>) -> ()
    return
  }
}
