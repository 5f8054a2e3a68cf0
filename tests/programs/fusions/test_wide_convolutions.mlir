// ----- DEPTHWISE
func.func @main(%x: tensor<1x3x7x8xbf16>, %w: tensor<3x3x3xbf16>) -> tensor<1x3x5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3x5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
  %r = linalg.depthwise_conv_2d_nchw_chw {
    dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x3x7x8xbf16>, tensor<3x3x3xbf16>) outs(%zeros : tensor<1x3x5x6xf32>)
    -> tensor<1x3x5x6xf32>
  return %r : tensor<1x3x5x6xf32>
}
// ----- OF_ONE_NUMBER
func.func @main(%x: tensor<1x3x7x8xbf16>) -> tensor<1x8x5x6xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<8x3x3x3xbf16>
  %e = tensor.empty() : tensor<1x8x5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x5x6xf32>) -> tensor<1x8x5x6xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x3x7x8xbf16>, tensor<8x3x3x3xbf16>) outs(%zeros : tensor<1x8x5x6xf32>)
    -> tensor<1x8x5x6xf32>
  return %r : tensor<1x8x5x6xf32>
}
// ----- NHWC
func.func @main(%x: tensor<2x7x6x3xbf16>, %w: tensor<3x3x3x32xbf16>) -> tensor<2x5x4x32xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x4x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x4x32xf32>) -> tensor<2x5x4x32xf32>
  %r = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<2x7x6x3xbf16>, tensor<3x3x3x32xbf16>) outs(%zeros : tensor<2x5x4x32xf32>)
    -> tensor<2x5x4x32xf32>
  %o = tensor.empty() : tensor<2x5x4x32xbf16>
  %rounded = linalg.generic {
    indexing_maps = [affine_map<(n, h, w, f) -> (n, h, w, f)>, affine_map<(n, h, w, f) -> (n, h, w, f)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%r : tensor<2x5x4x32xf32>) outs(%o : tensor<2x5x4x32xbf16>) {
    ^bb0(%one: f32, %before: bf16):
      %narrow = arith.truncf %one : f32 to bf16
      linalg.yield %narrow : bf16
  } -> tensor<2x5x4x32xbf16>
  return %rounded : tensor<2x5x4x32xbf16>
}
