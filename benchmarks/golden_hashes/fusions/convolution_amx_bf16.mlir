#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1)>
module {
  func.func @fusion(%arg0: memref<2x33x15x20xbf16>, %arg1: memref<40x33x3x3xbf16> {tuner.weight}, %arg2: memref<40xbf16> {tuner.weight}, %arg3: memref<2x40x7x18xbf16>) attributes {tuner.bytes = 83600 : i64, tuner.channels = 33 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.dimensions = "nfHW", tuner.loops = array<i64: 2, 40, 7, 18>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<2x33x15x20xbf16> to tensor<2x33x15x20xbf16>
    %1 = bufferization.to_tensor %arg1 restrict : memref<40x33x3x3xbf16> to tensor<40x33x3x3xbf16>
    %2 = bufferization.to_tensor %arg2 restrict : memref<40xbf16> to tensor<40xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %3 = tensor.empty() : tensor<2x40x7x18xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x40x7x18xf32>) -> tensor<2x40x7x18xf32>
    %5 = linalg.conv_2d_nchw_fchw {contraction, dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>} ins(%0, %1 : tensor<2x33x15x20xbf16>, tensor<40x33x3x3xbf16>) outs(%4 : tensor<2x40x7x18xf32>) -> tensor<2x40x7x18xf32>
    %6 = tensor.empty() : tensor<2x40x7x18xbf16>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %2 : tensor<2x40x7x18xf32>, tensor<40xbf16>) outs(%6 : tensor<2x40x7x18xbf16>) attrs =  {root} {
    ^bb0(%in: f32, %in_0: bf16, %out: bf16):
      %8 = arith.extf %in_0 : bf16 to f32
      %9 = arith.addf %in, %8 : f32
      %10 = arith.maximumf %9, %cst : f32
      %11 = arith.truncf %10 : f32 to bf16
      linalg.yield %11 : bf16
    } -> tensor<2x40x7x18xbf16>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<2x40x7x18xbf16>, memref<2x40x7x18xbf16>) -> ()
    return
  }
}
