#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @fusion(%arg0: memref<37x66xbf16>, %arg1: memref<66x100xbf16> {tuner.weight}, %arg2: memref<100xf32> {tuner.weight}, %arg3: memref<37x100xbf16>) attributes {tuner.bytes = 25884 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 37, 100>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<37x66xbf16> to tensor<37x66xbf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<66x100xbf16> to tensor<66x100xbf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<100xf32> to tensor<100xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<37x100xbf16> to tensor<37x100xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %4 = tensor.empty() : tensor<37x100xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<37x100xf32>) -> tensor<37x100xf32>
    %6 = linalg.matmul {contraction} ins(%0, %1 : tensor<37x66xbf16>, tensor<66x100xbf16>) outs(%5 : tensor<37x100xf32>) -> tensor<37x100xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %2 : tensor<37x100xf32>, tensor<100xf32>) outs(%3 : tensor<37x100xbf16>) attrs =  {root} {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %cst_1 = arith.constant 0.000000e+00 : f32
      %8 = arith.addf %in, %in_0 : f32
      %9 = arith.cmpf ugt, %8, %cst_1 : f32
      %10 = arith.select %9, %8, %cst_1 : f32
      %11 = arith.truncf %10 : f32 to bf16
      linalg.yield %11 : bf16
    } -> tensor<37x100xbf16>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<37x100xbf16>, memref<37x100xbf16>) -> ()
    return
  }
}
