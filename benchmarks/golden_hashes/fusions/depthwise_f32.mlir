#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d1)>
module {
  func.func @fusion(%arg0: memref<1x8x14x14xf32>, %arg1: memref<8x3x3xf32> {tuner.weight}, %arg2: memref<8xf32> {tuner.weight}, %arg3: memref<1x8x14x14xf32>) attributes {tuner.bytes = 12864 : i64, tuner.channels = 1 : i64, tuner.contractions = 1 : i64, tuner.copy = 0 : i64, tuner.dimensions = "ncHW", tuner.loops = array<i64: 1, 8, 14, 14>, tuner.transposed = 0 : i64, tuner.weights = 1 : i64} {
    %0 = bufferization.to_tensor %arg0 restrict : memref<1x8x14x14xf32> to tensor<1x8x14x14xf32>
    %1 = bufferization.to_tensor %arg1 restrict : memref<8x3x3xf32> to tensor<8x3x3xf32>
    %2 = bufferization.to_tensor %arg2 restrict : memref<8xf32> to tensor<8xf32>
    %3 = bufferization.to_tensor %arg3 restrict writable : memref<1x8x14x14xf32> to tensor<1x8x14x14xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst : f32
    } : tensor<1x8x14x14xf32> to tensor<1x8x16x16xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %4 = tensor.empty() : tensor<1x8x14x14xf32>
    %5 = linalg.fill ins(%cst_0 : f32) outs(%4 : tensor<1x8x14x14xf32>) -> tensor<1x8x14x14xf32>
    %6 = linalg.depthwise_conv_2d_nchw_chw {contraction, dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%padded, %1 : tensor<1x8x16x16xf32>, tensor<8x3x3xf32>) outs(%5 : tensor<1x8x14x14xf32>) -> tensor<1x8x14x14xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %2 : tensor<1x8x14x14xf32>, tensor<8xf32>) outs(%4 : tensor<1x8x14x14xf32>) attrs =  {root} {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %8 = arith.addf %in, %in_1 : f32
      %9 = arith.maximumf %8, %cst_0 : f32
      linalg.yield %9 : f32
    } -> tensor<1x8x14x14xf32>
    bufferization.materialize_in_destination %7 in restrict writable %arg3 : (tensor<1x8x14x14xf32>, memref<1x8x14x14xf32>) -> ()
    return
  }
}
