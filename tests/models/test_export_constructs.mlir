// ----- EMBEDDING
func.func @main(%table: tensor<9x4xf32>, %at: tensor<5xi64>) -> tensor<5x4xf32> {
  %c0 = arith.constant 0 : i64
  %c9 = arith.constant 9 : i64
  %e = tensor.empty() : tensor<5x4xf32>
  %r = linalg.generic {indexing_maps = [#row, #map], iterator_types = ["parallel", "parallel"]}
    ins(%at : tensor<5xi64>) outs(%e : tensor<5x4xf32>) {
  ^bb0(%i: i64, %out: f32):
    %column = linalg.index 1 : index
    %row = arith.index_cast %i : i64 to index
    CHECKS
    %x = tensor.extract %table[%row, %column] : tensor<9x4xf32>
    linalg.yield %x : f32
  } -> tensor<5x4xf32>
  return %r : tensor<5x4xf32>
}
// ----- ARGMAX
func.func @main(%a: tensor<2x6xf32>) -> (tensor<2xf32>, tensor<2xi64>) {
  %least = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : i64
  %ev = tensor.empty() : tensor<2xf32>
  %ei = tensor.empty() : tensor<2xi64>
  %v = linalg.fill ins(%least : f32) outs(%ev : tensor<2xf32>) -> tensor<2xf32>
  %n = linalg.fill ins(%c0 : i64) outs(%ei : tensor<2xi64>) -> tensor<2xi64>
  %r:2 = linalg.generic {indexing_maps = [#map, #row, #row], iterator_types = ["parallel", "reduction"]}
    ins(%a : tensor<2x6xf32>) outs(%v, %n : tensor<2xf32>, tensor<2xi64>) {
  ^bb0(%x: f32, %most: f32, %place: i64):
    %j = linalg.index 1 : index
    %here = arith.index_cast %j : index to i64
    %new = arith.maximumf %x, %most : f32
    %is = arith.cmpf ogt, %x, %most : f32
    %at = arith.select %is, %here, %place : i64
    linalg.yield %new, %at : f32, i64
  } -> (tensor<2xf32>, tensor<2xi64>)
  return %r#0, %r#1 : tensor<2xf32>, tensor<2xi64>
}
// ----- SOFTMAX
func.func @main(%a: tensor<2x6xf32>, %mask: tensor<2x6xi1>) -> tensor<2x6xf32> {
  %least = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x6xf32>
  %ev = tensor.empty() : tensor<2xf32>
  %m = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
    ins(%mask, %a : tensor<2x6xi1>, tensor<2x6xf32>) outs(%e : tensor<2x6xf32>) {
  ^bb0(%is: i1, %x: f32, %out: f32):
    %y = arith.select %is, %least, %x : f32
    linalg.yield %y : f32
  } -> tensor<2x6xf32>
  %fm = linalg.fill ins(%least : f32) outs(%ev : tensor<2xf32>) -> tensor<2xf32>
  %most = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
    ins(%m : tensor<2x6xf32>) outs(%fm : tensor<2xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.maximumf %x, %out : f32
    linalg.yield %y : f32
  } -> tensor<2xf32>
  %p = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
    ins(%m, %most : tensor<2x6xf32>, tensor<2xf32>) outs(%e : tensor<2x6xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %d = arith.subf %x, %s : f32
    %y = math.exp %d : f32
    linalg.yield %y : f32
  } -> tensor<2x6xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%ev : tensor<2xf32>) -> tensor<2xf32>
  %sum = linalg.generic {indexing_maps = [#map, #row], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<2x6xf32>) outs(%fs : tensor<2xf32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %out : f32
    linalg.yield %y : f32
  } -> tensor<2xf32>
  %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
    ins(%p, %sum : tensor<2x6xf32>, tensor<2xf32>) outs(%e : tensor<2x6xf32>) {
  ^bb0(%x: f32, %s: f32, %out: f32):
    %y = arith.divf %x, %s : f32
    linalg.yield %y : f32
  } -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}
// ----- RANK0
func.func @main(%a: tensor<f32>, %b: tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %e4 = tensor.empty() : tensor<4xf32>
  %twice = linalg.generic {indexing_maps = [#none, #none], iterator_types = []}
    ins(%a : tensor<f32>) outs(%e : tensor<f32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %x : f32
    linalg.yield %y : f32
  } -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#one, affine_map<(i) -> ()>, #one], iterator_types = ["parallel"]}
    ins(%b, %twice : tensor<4xf32>, tensor<f32>) outs(%e4 : tensor<4xf32>) {
  ^bb0(%x: f32, %f: f32, %out: f32):
    %y = arith.mulf %x, %f : f32
    linalg.yield %y : f32
  } -> tensor<4xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#one, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%s : tensor<4xf32>) outs(%f0 : tensor<f32>) {
  ^bb0(%x: f32, %out: f32):
    %y = arith.addf %x, %out : f32
    linalg.yield %y : f32
  } -> tensor<f32>
  return %sum, %s : tensor<f32>, tensor<4xf32>
}
// ----- DEPTHWISE
func.func @main(%x: tensor<1x3x9x9xf32>, %w: tensor<3x3x3xf32>) -> tensor<1x3xROWSxROWSxf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x3xROWSxROWSxf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x3xROWSxROWSxf32>) -> tensor<1x3xROWSxROWSxf32>
  %r = linalg.depthwise_conv_2d_nchw_chw
    {dilations = dense<DILATION> : vector<2xi64>, strides = dense<STRIDE> : vector<2xi64>}
    ins(%x, %w : tensor<1x3x9x9xf32>, tensor<3x3x3xf32>) outs(%f : tensor<1x3xROWSxROWSxf32>)
    -> tensor<1x3xROWSxROWSxf32>
  return %r : tensor<1x3xROWSxROWSxf32>
}
// ----- POOL
func.func @main(%x: tensor<1x2x7x7xf32>) -> tensor<1x2x4x4xf32> {
  %least = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %least : f32
  } : tensor<1x2x7x7xf32> to tensor<1x2x9x9xf32>
  %window = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x2x4x4xf32>
  %f = linalg.fill ins(%least : f32) outs(%e : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %r = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
    ins(%p, %window : tensor<1x2x9x9xf32>, tensor<3x3xf32>) outs(%f : tensor<1x2x4x4xf32>)
    -> tensor<1x2x4x4xf32>
  return %r : tensor<1x2x4x4xf32>
}
// ----- GLOBAL
memref.global "private" constant @w : memref<4xf32> = dense_resource<w>
func.func @main(%a: memref<4xf32>) {
  %w = memref.get_global @w : memref<4xf32>
  memref.copy %w, %a : memref<4xf32> to memref<4xf32>
  return
}
// ----- PLUS_CONSTANT
func.func @main(%a: tensor<37x5xELEMENT>) -> tensor<37x5xELEMENT> {
  %w = arith.constant dense_resource<CONSTANT> : tensor<37x5xELEMENT>
  %e = tensor.empty() : tensor<37x5xELEMENT>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
    ins(%a, %w : tensor<37x5xELEMENT>, tensor<37x5xELEMENT>) outs(%e : tensor<37x5xELEMENT>) {
  ^bb0(%x: ELEMENT, %y: ELEMENT, %z: ELEMENT):
    %s = arith.ADD %x, %y : ELEMENT
    linalg.yield %s : ELEMENT
  } -> tensor<37x5xELEMENT>
  return %r : tensor<37x5xELEMENT>
}
// ----- TIMES_CONSTANT
func.func @main(%a: tensor<4xSIZExf32>) -> tensor<4xSIZExf32> {
  %w = arith.constant dense_resource<torch_tensor_SIZE_SIZE_torch.float32> : tensor<SIZExSIZExf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xSIZExf32>
  %e2 = tensor.empty() : tensor<SIZExSIZExf32>
  %t = linalg.transpose ins(%w : tensor<SIZExSIZExf32>) outs(%e2 : tensor<SIZExSIZExf32>) permutation = [1, 0]
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  %p = linalg.matmul ins(%a, %t : tensor<4xSIZExf32>, tensor<SIZExSIZExf32>) outs(%f : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  %q = linalg.matmul ins(%p, %w : tensor<4xSIZExf32>, tensor<SIZExSIZExf32>) outs(%f : tensor<4xSIZExf32>) -> tensor<4xSIZExf32>
  return %q : tensor<4xSIZExf32>
}
// ----- gelu_by_a_cube
%three = arith.constant 3 : i64
%cube = math.fpowi %x0, %three : TYPE, i64
%c = arith.constant 4.471500e-02 : TYPE
%z = arith.mulf %cube, %c : TYPE
%s = arith.addf %x0, %z : TYPE
%y = math.tanh %s : TYPE
// ----- silu
%n = arith.negf %x0 : TYPE
%e1 = math.exp %n : TYPE
%one = arith.constant 1.0 : TYPE
%d = arith.addf %e1, %one : TYPE
%y = arith.divf %x0, %d : TYPE
// ----- gelu_by_erf
%y = math.erf %x0 : TYPE
// ----- sine
%y = math.sin %x0 : TYPE
// ----- relu_that_keeps_nan
%zero = arith.constant 0.0 : TYPE
%is = arith.cmpf ugt, %x0, %zero : TYPE
%y = arith.select %is, %x0, %zero : TYPE
// ----- cmod
%c = arith.constant 0.375 : TYPE %y = arith.remf %x0, %c : TYPE
// ----- power
%small = arith.constant 1.7 : TYPE
%a = math.absf %x0 : TYPE
%y = math.powf %a, %small : TYPE
// ----- EACH
func.func @main(%a0: tensor<2x6xTYPE>) -> tensor<2x6xTYPE> {
  %e = tensor.empty() : tensor<2x6xTYPE>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
    ins(%a0 : tensor<2x6xTYPE>) outs(%e : tensor<2x6xTYPE>) {
  ^bb0(%x0: TYPE, %out: TYPE):
    BODY
    linalg.yield %y : TYPE
  } -> tensor<2x6xTYPE>
  return %r : tensor<2x6xTYPE>
}
// ----- CHECKS
%less = arith.cmpi slt, %i, %c9 : i64
    cf.assert %less, "index must be smaller than dim size"
    %more = arith.cmpi sge, %i, %c0 : i64
    cf.assert %more, "index must be larger or equal to 0"
// ----- MAPS
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#one = affine_map<(i) -> (i)>
#none = affine_map<() -> ()>
// ----- DYNAMIC
func.func @main(%a0: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a0, %c0 : tensor<?x6xf32>
  %e = tensor.empty(%d) : tensor<?x6xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
    ins(%a0 : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) {
  ^bb0(%x0: f32, %out: f32):
    %y = arith.addf %x0, %x0 : f32
    linalg.yield %y : f32
  } -> tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}
