// ----- CONVOLUTION
func.func @f(%x: tensor<1x3x9xf32>, %w: tensor<8x3x2xf32>, %y: tensor<1x8x3xf32>) {
  %r = linalg.conv_1d_ncw_fcw {strides = dense<2> : tensor<1xi64>, dilations = dense<4> : tensor<1xi64>}
    ins(%x, %w : tensor<1x3x9xf32>, tensor<8x3x2xf32>) outs(%y : tensor<1x8x3xf32>) -> tensor<1x8x3xf32>
  return
}
// ----- LIMITED
func.func @f(%x: f32, %other: bf16) -> bf16 {
  %limit = arith.constant 6.000000e+00 : bf16
  %zero = arith.constant 0.000000e+00 : bf16
  {body}
  return %y : bf16
}
