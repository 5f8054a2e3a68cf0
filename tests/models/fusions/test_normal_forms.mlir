// ----- CONVOLUTION
func.func @main(%x: tensor<IMAGESx3xSIDExSIDExf32>, %w: tensor<FILTERSx3x1x1xf32>) -> tensor<IMAGESxFILTERSxROWSxROWSxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<IMAGESxFILTERSxROWSxROWSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<IMAGESxFILTERSxROWSxROWSxf32>) -> tensor<IMAGESxFILTERSxROWSxROWSxf32>
  %c = linalg.conv_2d_nchw_fchw {
    dilations = dense<1> : tensor<2xi64>, strides = dense<STRIDE> : tensor<2xi64>}
    ins(%x, %w : tensor<IMAGESx3xSIDExSIDExf32>, tensor<FILTERSx3x1x1xf32>) outs(%zeros : tensor<IMAGESxFILTERSxROWSxROWSxf32>) -> tensor<IMAGESxFILTERSxROWSxROWSxf32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
    iterator_types = ["parallel", "parallel", "parallel", "parallel"]
  } ins(%c : tensor<IMAGESxFILTERSxROWSxROWSxf32>) outs(%e : tensor<IMAGESxFILTERSxROWSxROWSxf32>) {
    ^bb0(%one: f32, %before: f32):
      %most = arith.maximumf %one, %zero : f32
      linalg.yield %most : f32
  } -> tensor<IMAGESxFILTERSxROWSxROWSxf32>
  return %r : tensor<IMAGESxFILTERSxROWSxROWSxf32>
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
// ----- EXTENDED_BIAS
%wide = arith.extf %two : bf16 to f32
%sum = arith.addf %one, %wide : f32
linalg.yield %sum : f32
// ----- DOUBLED
%twice = arith.addf %two, %two : bf16
%wide = arith.extf %twice : bf16 to f32
%sum = arith.addf %one, %wide : f32
linalg.yield %sum : f32
// ----- EXTENDED
%empty_OPERAND = tensor.empty() : tensor<SHAPExf32>
%wide_OPERAND = linalg.generic {
  indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
  iterator_types = ["parallel", "parallel"]
} ins(%OPERAND : tensor<SHAPExbf16>) outs(%empty_OPERAND : tensor<SHAPExf32>) {
  ^bb0(%one: bf16, %before: f32):
    %more = arith.extf %one : bf16 to f32
    EXTRA linalg.yield RESULT : f32
} -> tensor<SHAPExf32>
// ----- BYTES
func.func @main(%a: tensor<4x6xi8>, %b: tensor<SHAPExi8>) -> tensor<4x5xWIDE> {
  %zero = arith.constant 0 : WIDE
  %a_e = tensor.empty() : tensor<4x6xWIDE>
  %a_w = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a : tensor<4x6xi8>) outs(%a_e : tensor<4x6xWIDE>) {
    ^bb0(%x: i8, %o: WIDE):
      %y = arith.extsi %x : i8 to WIDE
      linalg.yield %y : WIDE
  } -> tensor<4x6xWIDE>
  %b_e = tensor.empty() : tensor<SHAPExWIDE>
  %b_w = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%b : tensor<SHAPExi8>) outs(%b_e : tensor<SHAPExWIDE>) {
    ^bb0(%x: i8, %o: WIDE):
      %y = EXTEND %x : i8 to WIDE
      linalg.yield %y : WIDE
  } -> tensor<SHAPExWIDE>
  TURN
  %e = tensor.empty() : tensor<4x5xWIDE>
  %zeros = linalg.fill ins(%zero : WIDE) outs(%e : tensor<4x5xWIDE>) -> tensor<4x5xWIDE>
  %r = linalg.matmul CAST ins(%a_w, RIGHT : tensor<4x6xWIDE>, tensor<6x5xWIDE>)
    outs(%zeros : tensor<4x5xWIDE>) -> tensor<4x5xWIDE>
  return %r : tensor<4x5xWIDE>
}
// ----- TURN
%t_e = tensor.empty() : tensor<6x5xi32>
%t = linalg.transpose ins(%b_w : tensor<5x6xi32>) outs(%t_e : tensor<6x5xi32>) permutation = [1, 0]
// ----- PRODUCT
func.func @main(%a: tensor<ROWSx6xbf16>, %b: tensor<6x5xTYPE>) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  LEFT
  RIGHT
  CUT
  %e = tensor.empty() : tensor<4x5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  %r = linalg.matmul ins(OF_A, OF_B : tensor<4x6xf32>, tensor<6x5xf32>) outs(%zeros : tensor<4x5xf32>)
    -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
// ----- TEXT
func.func @main(%a: tensor<LEAD4x6xTYPE>, %b: tensor<LEAD6x5xTYPE>) -> (RESULTS) {
  %start = arith.constant START : i64
  %e = tensor.empty() : tensor<LEAD4x5xi64>
  %zeros = linalg.fill ins(%start : i64) outs(%e : tensor<LEAD4x5xi64>) -> tensor<LEAD4x5xi64>
  %w = linalg.PRODUCT CAST ins(%a, %b : tensor<LEAD4x6xTYPE>, tensor<LEAD6x5xTYPE>)
    outs(%zeros : tensor<LEAD4x5xi64>) -> tensor<LEAD4x5xi64>
  %n = tensor.empty() : tensor<LEAD4x5xi32>
  %r = linalg.generic {
    indexing_maps = [affine_map<(DIMS) -> (DIMS)>, affine_map<(DIMS) -> (DIMS)>], iterator_types = [LOOPS]
  } ins(%w : tensor<LEAD4x5xi64>) outs(%n : tensor<LEAD4x5xi32>) {
    ^bb0(%x: i64, %o: i32):
      %y = arith.trunci %x : i64 to i32
      linalg.yield %y : i32
  } -> tensor<LEAD4x5xi32>
  return RETURNED : RESULTS
}
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
// ----- CONVOLUTIONS
func.func @main(ARGUMENTS) -> (RESULTS) {
  CONSTANTS
  JOINED
  %padding = arith.constant PADDING : bf16
  %zero = arith.constant 0.0 : ELEMENT
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i: index, %j: index, %k: index, %l: index):
      tensor.yield %padding : bf16
  } : tensor<1xCHANNELSx5x6xbf16> to tensor<1xCHANNELSx7x8xbf16>
  %e = tensor.empty() : tensor<1x8x5x6xELEMENT>
  %zeros = linalg.fill ins(%zero : ELEMENT) outs(%e : tensor<1x8x5x6xELEMENT>) -> tensor<1x8x5x6xELEMENT>
  CONVOLVED
  return RETURNED : RESULTS
}
// ----- CONVOLVED
%rNUMBER = linalg.conv_2d_nchw_fchw {
  dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
  ins(%p, %wNUMBER : tensor<1xCHANNELSx7x8xbf16>, tensor<8xCHANNELSx3x3xbf16>)
  outs(%zeros : tensor<1x8x5x6xELEMENT>) -> tensor<1x8x5x6xELEMENT>
// ----- JOINED
%x = tensor.concat dim(1) %x0, %x1 : (tensor<1x3x5x6xbf16>, tensor<1x3x5x6xbf16>) -> tensor<1x6x5x6xbf16>
// ----- SIGNED_ZEROS

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %e2 = tensor.empty() : tensor<2xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<2xf32>) outs(%e2 : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %p = tensor.pad %s low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<2xf32> to tensor<4xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<4xf32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %u = tensor.extract_slice %t[1] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%u : tensor<2xf32>) outs(%e2 : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.mulf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  %q = tensor.pad %v low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %minus : f32
  } : tensor<2xf32> to tensor<4xf32>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%q : tensor<4xf32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.divf %one, %a : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %w : tensor<4xf32>
}
// ----- LARGE_INTEGER

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xi64>) -> tensor<4xi64> {
  %large = arith.constant NUMBER : i64
  %one = arith.constant 1 : i64
  %e2 = tensor.empty() : tensor<2xi64>
  %e4 = tensor.empty() : tensor<4xi64>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<2xi64>) outs(%e2 : tensor<2xi64>) {
  ^bb0(%a: i64, %o: i64):
    %r = arith.addi %a, %one : i64
    linalg.yield %r : i64
  } -> tensor<2xi64>
  %p = tensor.pad %s low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %large : i64
  } : tensor<2xi64> to tensor<4xi64>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<4xi64>) outs(%e4 : tensor<4xi64>) {
  ^bb0(%a: i64, %o: i64):
    %r = arith.muli %a, %one : i64
    %z = arith.xori %r, %one : i64
    linalg.yield %z : i64
  } -> tensor<4xi64>
  return %t : tensor<4xi64>
}
// ----- ASSERTED_WEIGHT

#id = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %w1 = arith.constant dense<[1, 0]> : tensor<2xi64>
  %w2 = arith.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %c2 = arith.constant 2 : i64
  %ei = tensor.empty() : tensor<2xi64>
  %e = tensor.empty() : tensor<2xf32>
  %unused = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%w1 : tensor<2xi64>) outs(%ei : tensor<2xi64>) {
  ^bb0(%a: i64, %o: i64):
    %in = arith.cmpi slt, %a, %c2 : i64
    cf.assert %in, "index out of range"
    linalg.yield %a : i64
  } -> tensor<2xi64>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %w2 : tensor<2xf32>, tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  return %s : tensor<2xf32>
}
