#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @group(%arg0: memref<9x100xbf16>, %arg1: memref<9x100xbf16>) attributes {tuner.bytes = 3600 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 9, 100>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<9x100xbf16> to tensor<9x100xbf16>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<9x100xbf16> to tensor<9x100xbf16>
    %cst = arith.constant 0xFF80 : bf16
    %cst_0 = arith.constant 0.000000e+00 : bf16
    %2 = tensor.empty() : tensor<9xbf16>
    %3 = tensor.empty() : tensor<9x100xbf16>
    %4 = linalg.fill ins(%cst : bf16) outs(%2 : tensor<9xbf16>) -> tensor<9xbf16>
    %5 = linalg.fill ins(%cst_0 : bf16) outs(%2 : tensor<9xbf16>) -> tensor<9xbf16>
    %6 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<9x100xbf16>) outs(%4 : tensor<9xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %10 = arith.maximumf %in, %out : bf16
      linalg.yield %10 : bf16
    } -> tensor<9xbf16>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %6 : tensor<9x100xbf16>, tensor<9xbf16>) outs(%3 : tensor<9x100xbf16>) {
    ^bb0(%in: bf16, %in_1: bf16, %out: bf16):
      %10 = arith.subf %in, %in_1 : bf16
      %11 = math.exp %10 : bf16
      linalg.yield %11 : bf16
    } -> tensor<9x100xbf16>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<9x100xbf16>) outs(%5 : tensor<9xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %10 = arith.addf %in, %out : bf16
      linalg.yield %10 : bf16
    } -> tensor<9xbf16>
    %9 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%7, %8 : tensor<9x100xbf16>, tensor<9xbf16>) outs(%1 : tensor<9x100xbf16>) attrs =  {root} {
    ^bb0(%in: bf16, %in_1: bf16, %out: bf16):
      %10 = arith.divf %in, %in_1 : bf16
      linalg.yield %10 : bf16
    } -> tensor<9x100xbf16>
    bufferization.materialize_in_destination %9 in restrict writable %arg1 : (tensor<9x100xbf16>, memref<9x100xbf16>) -> ()
    return
  }
}
