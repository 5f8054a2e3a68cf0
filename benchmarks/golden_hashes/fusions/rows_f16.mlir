#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @fusion(%arg0: memref<9x100xf16>, %arg1: memref<9x100xf16>) attributes {tuner.bytes = 3600 : i64, tuner.contractions = 0 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 9, 100>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<9x100xf16> to tensor<9x100xf16>
    %1 = bufferization.to_tensor %arg1 restrict writable : memref<9x100xf16> to tensor<9x100xf16>
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %2 = tensor.empty() : tensor<9xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<9xf32>) -> tensor<9xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<9x100xf16>) outs(%3 : tensor<9xf32>) {
    ^bb0(%in: f16, %out: f32):
      %6 = arith.extf %in : f16 to f32
      %7 = arith.mulf %6, %6 : f32
      %8 = arith.addf %7, %out : f32
      linalg.yield %8 : f32
    } -> tensor<9xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%0, %4 : tensor<9x100xf16>, tensor<9xf32>) outs(%1 : tensor<9x100xf16>) attrs =  {root} {
    ^bb0(%in: f16, %in_1: f32, %out: f16):
      %6 = arith.extf %in : f16 to f32
      %7 = arith.addf %in_1, %cst_0 : f32
      %8 = arith.divf %6, %7 : f32
      %9 = arith.truncf %8 : f32 to f16
      linalg.yield %9 : f16
    } -> tensor<9x100xf16>
    bufferization.materialize_in_destination %5 in restrict writable %arg1 : (tensor<9x100xf16>, memref<9x100xf16>) -> ()
    return
  }
}
