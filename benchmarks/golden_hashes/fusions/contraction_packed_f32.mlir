#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @fusion(%arg0: memref<37x64xf32>, %arg1: memref<64x100xf32> {tuner.weight}, %arg2: memref<100xf32> {tuner.weight}, %arg3: memref<37x100xf32>) attributes {tuner.bytes = 50272 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.loops = array<i64: 37, 100>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<37x64xf32> to tensor<37x64xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<64x100xf32> to tensor<64x100xf32>
    %2 = bufferization.to_tensor %arg2 restrict : memref<100xf32> to tensor<100xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<37x100xf32> to tensor<37x100xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %4 = tensor.empty() : tensor<37x100xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<37x100xf32>) -> tensor<37x100xf32>
    %6 = linalg.matmul {contraction} ins(%0, %1 : tensor<37x64xf32>, tensor<64x100xf32>) outs(%5 : tensor<37x100xf32>) -> tensor<37x100xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %2 : tensor<37x100xf32>, tensor<100xf32>) outs(%3 : tensor<37x100xf32>) attrs =  {root} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %cst_1 = arith.constant 0.000000e+00 : f32
      %8 = arith.addf %in, %in_0 : f32
      %cst_2 = arith.constant 5.000000e-01 : f32
      %cst_3 = arith.constant 0.707106769 : f32
      %cst_4 = arith.constant 1.000000e+00 : f32
      %9 = arith.mulf %8, %cst_3 : f32
      %10 = math.erf %9 : f32
      %11 = arith.addf %10, %cst_4 : f32
      %12 = arith.mulf %11, %cst_2 : f32
      %13 = arith.mulf %8, %12 : f32
      linalg.yield %13 : f32
    } -> tensor<37x100xf32>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<37x100xf32>, memref<37x100xf32>) -> ()
    return
  }
}
