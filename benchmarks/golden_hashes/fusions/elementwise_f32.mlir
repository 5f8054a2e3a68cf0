#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @fusion(%arg0: memref<6x50xf32>, %arg1: memref<6x50xf32>) attributes {tuner.bytes = 2400 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 6, 50>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<6x50xf32> to tensor<6x50xf32>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<6x50xf32> to tensor<6x50xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<6x50xf32>) outs(%1 : tensor<6x50xf32>) attrs =  {root} {
    ^bb0(%in: f32, %out: f32):
      %3 = math.tanh %in : f32
      linalg.yield %3 : f32
    } -> tensor<6x50xf32>
    bufferization.materialize_in_destination %2 in restrict writable %arg1 : (tensor<6x50xf32>, memref<6x50xf32>) -> ()
    return
  }
}
