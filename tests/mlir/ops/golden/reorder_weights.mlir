#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d6, d2 + d4, d3 + d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d1)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
module {
  func.func @f(%arg0: memref<1x3x6x6xf32>, %arg1: memref<3x3x3x8xf32> {tuner.order = array<i64: 2, 3, 1, 0>, tuner.packing = 8 : i64, tuner.weight}, %arg2: memref<1x8x4x4xf32>) {
    %0 = bufferization.to_tensor %arg0 restrict : memref<1x3x6x6xf32> to tensor<1x3x6x6xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<3x3x3x8xf32> to tensor<3x3x3x8xf32>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<1x8x4x4xf32> to tensor<1x8x4x4xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%0, %1 : tensor<1x3x6x6xf32>, tensor<3x3x3x8xf32>) outs(%2 : tensor<1x8x4x4xf32>) attrs =  {contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.mulf %in, %in_0 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<1x8x4x4xf32>
    bufferization.materialize_in_destination %3 in restrict writable %arg2 : (tensor<1x8x4x4xf32>, memref<1x8x4x4xf32>) -> ()
    return
  }
}
