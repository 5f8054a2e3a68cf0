#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @f(%arg0: memref<64x160xf8E4M3FN> {tuner.buffer = "a"}, %arg1: memref<128x160xf8E4M3FN> {tuner.buffer = "b"}, %arg2: memref<64x2xf32> {tuner.buffer = "scale_a", tuner.scale = "a"}, %arg3: memref<1x2xf32> {tuner.buffer = "scale_b", tuner.scale = "b"}, %arg4: memref<64x128xf32> {tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<64x160xf8E4M3FN> to tensor<64x160xf8E4M3FN>
    %1 = bufferization.to_tensor %arg1 restrict : memref<128x160xf8E4M3FN> to tensor<128x160xf8E4M3FN>
    %2 = bufferization.to_tensor %arg4 restrict writable : memref<64x128xf32> to tensor<64x128xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<64x128xf32>) -> tensor<64x128xf32>
    %4 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%0, %1 : tensor<64x160xf8E4M3FN>, tensor<128x160xf8E4M3FN>) outs(%3 : tensor<64x128xf32>) -> tensor<64x128xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg4 : (tensor<64x128xf32>, memref<64x128xf32>) -> ()
    return
  }
}
