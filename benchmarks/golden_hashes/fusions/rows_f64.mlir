#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @fusion(%arg0: memref<9x100xf64>, %arg1: memref<9x100xf64>) attributes {tuner.bytes = 14400 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 9, 100>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<9x100xf64> to tensor<9x100xf64>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<9x100xf64> to tensor<9x100xf64>
    %cst = arith.constant 0xFFF0000000000000 : f64
    %cst_0 = arith.constant 0.000000e+00 : f64
    %2 = tensor.empty() : tensor<9xf64>
    %3 = tensor.empty() : tensor<9x100xf64>
    %4 = linalg.fill ins(%cst : f64) outs(%2 : tensor<9xf64>) -> tensor<9xf64>
    %5 = linalg.fill ins(%cst_0 : f64) outs(%2 : tensor<9xf64>) -> tensor<9xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<9x100xf64>) outs(%4 : tensor<9xf64>) {
    ^bb0(%in: f64, %out: f64):
      %10 = arith.maximumf %in, %out : f64
      linalg.yield %10 : f64
    } -> tensor<9xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %6 : tensor<9x100xf64>, tensor<9xf64>) outs(%3 : tensor<9x100xf64>) {
    ^bb0(%in: f64, %in_1: f64, %out: f64):
      %10 = arith.subf %in, %in_1 : f64
      %11 = math.exp %10 : f64
      linalg.yield %11 : f64
    } -> tensor<9x100xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<9x100xf64>) outs(%5 : tensor<9xf64>) {
    ^bb0(%in: f64, %out: f64):
      %10 = arith.addf %in, %out : f64
      linalg.yield %10 : f64
    } -> tensor<9xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %8 : tensor<9x100xf64>, tensor<9xf64>) outs(%1 : tensor<9x100xf64>) attrs =  {root} {
    ^bb0(%in: f64, %in_1: f64, %out: f64):
      %10 = arith.divf %in, %in_1 : f64
      linalg.yield %10 : f64
    } -> tensor<9x100xf64>
    bufferization.materialize_in_destination %9 in restrict writable %arg1 : (tensor<9x100xf64>, memref<9x100xf64>) -> ()
    return
  }
}
