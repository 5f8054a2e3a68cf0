// ----- CONVOLUTION
func.func @main(%x: tensor<IMAGESx3xSIDExSIDExf32>, %w: tensor<8x3x1x1xf32>) -> tensor<IMAGESx8xROWSxROWSxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<IMAGESx8xROWSxROWSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<IMAGESx8xROWSxROWSxf32>) -> tensor<IMAGESx8xROWSxROWSxf32>
  %c = linalg.conv_2d_nchw_fchw {
    dilations = dense<1> : tensor<2xi64>, strides = dense<STRIDE> : tensor<2xi64>}
    ins(%x, %w : tensor<IMAGESx3xSIDExSIDExf32>, tensor<8x3x1x1xf32>) outs(%zeros : tensor<IMAGESx8xROWSxROWSxf32>) -> tensor<IMAGESx8xROWSxROWSxf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%c : tensor<IMAGESx8xROWSxROWSxf32>) outs(%e : tensor<IMAGESx8xROWSxROWSxf32>) {
    ^bb0(%one: f32, %before: f32):
      %most = arith.maximumf %one, %zero : f32
      linalg.yield %most : f32
  } -> tensor<IMAGESx8xROWSxROWSxf32>
  return %r : tensor<IMAGESx8xROWSxROWSxf32>
}
// ----- BIAS
func.func @main(%x: tensor<8x4xf32>MORE) -> tensor<8x4xf32> {
  READ
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<WEIGHT>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %b : tensor<8x4xf32>, KIND) outs(%e : tensor<8x4xf32>) {
    ^bb0(%one: f32, %two: bf16, %before: f32):
      BODY
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}
// ----- EXTENDED
%wide = arith.extf %two : bf16 to f32
%sum = arith.addf %one, %wide : f32
linalg.yield %sum : f32
// ----- DOUBLED
%twice = arith.addf %two, %two : bf16
%wide = arith.extf %twice : bf16 to f32
%sum = arith.addf %one, %wide : f32
linalg.yield %sum : f32
