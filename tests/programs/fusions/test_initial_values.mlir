// ----- CONVOLUTION
func.func @main(%x: tensor<2x3x10xf32>, %w: tensor<4x3x3xf32>, %bias: tensor<2x4x8xf32>)
    -> tensor<2x4x8xf32> {
  %r = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>}
    ins(%x, %w : tensor<2x3x10xf32>, tensor<4x3x3xf32>) outs(%bias : tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return %r : tensor<2x4x8xf32>
}
