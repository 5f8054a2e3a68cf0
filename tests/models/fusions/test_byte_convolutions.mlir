// ----- CONVOLUTION_OF_BYTES
#same = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @main(%x: tensor<IMAGExi8>, %w: tensor<WINDOWxi8>) -> tensor<RESULTxi32> {
  %zero = arith.constant 0 : i32
  %number = arith.constant NUMBER : i32
  %x_e = tensor.empty() : tensor<IMAGExi32>
  %x_w = linalg.generic {
    indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%x : tensor<IMAGExi8>) outs(%x_e : tensor<IMAGExi32>) {
    ^bb0(%in: i8, %o: i32):
      %wide = EXTEND %in : i8 to i32
      linalg.yield %wide : i32
  } -> tensor<IMAGExi32>
  %w_e = tensor.empty() : tensor<WINDOWxi32>
  %w_w = linalg.generic {
    indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%w : tensor<WINDOWxi8>) outs(%w_e : tensor<WINDOWxi32>) {
    ^bb0(%in: i8, %o: i32):
      %wide = arith.extsi %in : i8 to i32
      linalg.yield %wide : i32
  } -> tensor<WINDOWxi32>
  %p = tensor.pad %x_w low[AROUND] high[AROUND] {
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %number : i32
  } : tensor<IMAGExi32> to tensor<PADDEDxi32>
  %e = tensor.empty() : tensor<RESULTxi32>
  %zeros = linalg.fill ins(%zero : i32) outs(%e : tensor<RESULTxi32>) -> tensor<RESULTxi32>
  %r = linalg.conv_2d_LAYOUT {strides = dense<STRIDE> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%p, %w_w : tensor<PADDEDxi32>, tensor<WINDOWxi32>) outs(%zeros : tensor<RESULTxi32>) -> tensor<RESULTxi32>
  return %r : tensor<RESULTxi32>
}
