#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @f(%arg0: memref<64x60xf32> {tuner.bounds = array<i64: 50, 60>, tuner.buffer = "a"}, %arg1: memref<40x60xf32> {tuner.buffer = "b"}, %arg2: memref<64x40xf32> {tuner.bounds = array<i64: 50, 40>, tuner.buffer = "c"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = bufferization.to_tensor %arg0 restrict : memref<64x60xf32> to tensor<64x60xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<40x60xf32> to tensor<40x60xf32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<64x40xf32> to tensor<64x40xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<64x40xf32>) -> tensor<64x40xf32>
    %4 = linalg.matmul indexing_maps = [#map, #map1, #map2] ins(%0, %1 : tensor<64x60xf32>, tensor<40x60xf32>) outs(%3 : tensor<64x40xf32>) -> tensor<64x40xf32>
    bufferization.materialize_in_destination %4 in restrict writable %arg2 : (tensor<64x40xf32>, memref<64x40xf32>) -> ()
    return
  }
}
