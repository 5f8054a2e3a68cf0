#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1)>
module {
  func.func @fusion(%arg0: memref<2x8x19x16xf32>, %arg1: memref<32x8x3x3xf32> {tuner.weight}, %arg2: memref<32xf32> {tuner.weight}, %arg3: memref<2x32x9x14xf32>) attributes {tuner.bytes = 61056 : i64, tuner.channels = 8 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.dimensions = "nfHW", tuner.loops = array<i64: 2, 32, 9, 14>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<2x8x19x16xf32> to tensor<2x8x19x16xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<32x8x3x3xf32> to tensor<32x8x3x3xf32>
    %2 = bufferization.to_tensor %arg2 restrict : memref<32xf32> to tensor<32xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %3 = tensor.empty() : tensor<2x32x9x14xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x32x9x14xf32>) -> tensor<2x32x9x14xf32>
    %5 = linalg.conv_2d_nchw_fchw {contraction, dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%0, %1 : tensor<2x8x19x16xf32>, tensor<32x8x3x3xf32>) outs(%4 : tensor<2x32x9x14xf32>) -> tensor<2x32x9x14xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %2 : tensor<2x32x9x14xf32>, tensor<32xf32>) outs(%3 : tensor<2x32x9x14xf32>) attrs =  {root} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.addf %in, %in_0 : f32
      %8 = arith.maximumf %7, %cst : f32
      linalg.yield %8 : f32
    } -> tensor<2x32x9x14xf32>
    bufferization.materialize_in_destination %6 in restrict writable %arg3 : (tensor<2x32x9x14xf32>, memref<2x32x9x14xf32>) -> ()
    return
  }
}
