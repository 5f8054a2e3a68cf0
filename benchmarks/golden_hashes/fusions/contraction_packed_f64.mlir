#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @fusion(%arg0: memref<37x64xf64>, %arg1: memref<64x100xf64> {tuner.weight}, %arg2: memref<100xf64> {tuner.weight}, %arg3: memref<37x100xf64>) attributes {tuner.bytes = 100544 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 37, 100>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<37x64xf64> to tensor<37x64xf64>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x100xf64> to tensor<64x100xf64>
    %2 = bufferization.to_tensor %arg2 restrict : memref<100xf64> to tensor<100xf64>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<37x100xf64> to tensor<37x100xf64>
    %cst = arith.constant 0.000000e+00 : f64
    %4 = tensor.empty() : tensor<37x100xf64>
    %5 = linalg.fill ins(%cst : f64) outs(%4 : tensor<37x100xf64>) -> tensor<37x100xf64>
    %6 = linalg.matmul {contraction} ins(%0, %1 : tensor<37x64xf64>, tensor<64x100xf64>) outs(%5 : tensor<37x100xf64>) -> tensor<37x100xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %2 : tensor<37x100xf64>, tensor<100xf64>) outs(%3 : tensor<37x100xf64>) attrs =  {root} {
    ^bb0(%in: f64, %in_0: f64, %out: f64):
      %cst_1 = arith.constant 0.000000e+00 : f64
      %8 = arith.addf %in, %in_0 : f64
      %cst_2 = arith.constant 5.000000e-01 : f64
      %cst_3 = arith.constant 0.70710678000000005 : f64
      %cst_4 = arith.constant 1.000000e+00 : f64
      %9 = arith.mulf %8, %cst_3 : f64
      %10 = math.erf %9 : f64
      %11 = arith.addf %10, %cst_4 : f64
      %12 = arith.mulf %11, %cst_2 : f64
      %13 = arith.mulf %8, %12 : f64
      linalg.yield %13 : f64
    } -> tensor<37x100xf64>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<37x100xf64>, memref<37x100xf64>) -> ()
    return
  }
}
