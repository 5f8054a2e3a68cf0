// ----- TEXT
func.func @f(%x: tensor<1x3x9xf32>, %w: tensor<8x3x2xf32>, %y: tensor<1x8x3xf32>) {
  %r = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>, dilations = dense<4> : tensor<1xi64>}
    ins(%x, %w : tensor<1x3x9xf32>, tensor<8x3x2xf32>) outs(%y : tensor<1x8x3xf32>) -> tensor<1x8x3xf32>
  return
}
