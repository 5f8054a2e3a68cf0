#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @fusion(%arg0: memref<9x100xf32>, %arg1: memref<9x100xf32>) attributes {tuner.bytes = 7200 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 9, 100>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<9x100xf32> to tensor<9x100xf32>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<9x100xf32> to tensor<9x100xf32>
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<9xf32>
    %3 = tensor.empty() : tensor<9x100xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%2 : tensor<9xf32>) -> tensor<9xf32>
    %5 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<9xf32>) -> tensor<9xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<9x100xf32>) outs(%4 : tensor<9xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.maximumf %in, %out : f32
      linalg.yield %10 : f32
    } -> tensor<9xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %6 : tensor<9x100xf32>, tensor<9xf32>) outs(%3 : tensor<9x100xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.subf %in, %in_1 : f32
      %11 = math.exp %10 : f32
      linalg.yield %11 : f32
    } -> tensor<9x100xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<9x100xf32>) outs(%5 : tensor<9xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.addf %in, %out : f32
      linalg.yield %10 : f32
    } -> tensor<9xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %8 : tensor<9x100xf32>, tensor<9xf32>) outs(%1 : tensor<9x100xf32>) attrs =  {root} {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.divf %in, %in_1 : f32
      linalg.yield %10 : f32
    } -> tensor<9x100xf32>
    bufferization.materialize_in_destination %9 in restrict writable %arg1 : (tensor<9x100xf32>, memref<9x100xf32>) -> ()
    return
  }
}
