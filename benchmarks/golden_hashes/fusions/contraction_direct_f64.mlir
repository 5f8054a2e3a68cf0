#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @fusion(%arg0: memref<3x24x64xf64>, %arg1: memref<3x64x48xf64>, %arg2: memref<3x24x48xf64>) attributes {tuner.bytes = 138240 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 3, 24, 48>, tuner.transposed = 0 : i64, tuner.weights = 0 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<3x24x64xf64> to tensor<3x24x64xf64>
    %1 = bufferization.to_tensor %arg1 restrict : memref<3x64x48xf64> to tensor<3x64x48xf64>
    %2 = bufferization.to_tensor %arg2 restrict writable : memref<3x24x48xf64> to tensor<3x24x48xf64>
    %cst = arith.constant 0.000000e+00 : f64
    %3 = tensor.empty() : tensor<3x24x48xf64>
    %4 = linalg.fill ins(%cst : f64) outs(%3 : tensor<3x24x48xf64>) -> tensor<3x24x48xf64>
    %5 = linalg.batch_matmul {contraction} ins(%0, %1 : tensor<3x24x64xf64>, tensor<3x64x48xf64>) outs(%4 : tensor<3x24x48xf64>) -> tensor<3x24x48xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<3x24x48xf64>) outs(%2 : tensor<3x24x48xf64>) attrs =  {root} {
    ^bb0(%in: f64, %out: f64):
      %cst_0 = arith.constant 0.000000e+00 : f64
      %cst_1 = arith.constant 1.250000e-01 : f64
      %7 = arith.mulf %in, %cst_1 : f64
      linalg.yield %7 : f64
    } -> tensor<3x24x48xf64>
    bufferization.materialize_in_destination %6 in restrict writable %arg2 : (tensor<3x24x48xf64>, memref<3x24x48xf64>) -> ()
    return
  }
}
