// ----- MAPS
#whole = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#cube = affine_map<(b, i, j) -> (b, i, j)>
#pair = affine_map<(b, i, j) -> (b, i)>
#turned = affine_map<(i, j) -> (j, i)>
// ----- CONTRACTION
func.func @main(%x: tensor<ROWSxINNERxf32>) -> tensor<ROWSxCOLUMNSxf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<NUMBERS> : tensor<INNERxCOLUMNSxf32>
  %bias = arith.constant dense<NUMBERS> : tensor<COLUMNSxf32>
  %z_e = tensor.empty() : tensor<ROWSxCOLUMNSxf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<ROWSxCOLUMNSxf32>) -> tensor<ROWSxCOLUMNSxf32>
  %p = linalg.matmul ins(%x, %w : tensor<ROWSxINNERxf32>, tensor<INNERxCOLUMNSxf32>)
    outs(%z : tensor<ROWSxCOLUMNSxf32>) -> tensor<ROWSxCOLUMNSxf32>
  %y = linalg.generic {indexing_maps = [#whole, #column, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%p, %bias : tensor<ROWSxCOLUMNSxf32>, tensor<COLUMNSxf32>) outs(%z_e : tensor<ROWSxCOLUMNSxf32>) {
  ^bb0(%v: f32, %b: f32, %o: f32):
    %s = arith.addf %v, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<ROWSxCOLUMNSxf32>
  return %y : tensor<ROWSxCOLUMNSxf32>
}
// ----- PAIR
func.func @main(%x: tensor<13x40xf32>) -> tensor<13x50xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<NUMBERS> : tensor<40x50xf32>
  %up = arith.constant dense<NUMBERS> : tensor<40x50xf32>
  %z_e = tensor.empty() : tensor<13x50xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<13x50xf32>) -> tensor<13x50xf32>
  %p = linalg.matmul ins(%x, %w : tensor<13x40xf32>, tensor<40x50xf32>) outs(%z : tensor<13x50xf32>)
    -> tensor<13x50xf32>
  %q = linalg.matmul ins(%x, %up : tensor<13x40xf32>, tensor<40x50xf32>) outs(%z : tensor<13x50xf32>)
    -> tensor<13x50xf32>
  %y = linalg.generic {indexing_maps = [#whole, #whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%p, %q : tensor<13x50xf32>, tensor<13x50xf32>) outs(%z_e : tensor<13x50xf32>) {
  ^bb0(%v: f32, %b: f32, %o: f32):
    %r = arith.mulf %v, %b : f32
    linalg.yield %r : f32
  } -> tensor<13x50xf32>
  return %y : tensor<13x50xf32>
}
// ----- BATCH_MATMUL
func.func @main(%x: tensor<3x17x24xf32>, %w: tensor<3x24x19xf32>) -> tensor<3x17x19xf32> {
  %zero = arith.constant 0.0 : f32
  %z_e = tensor.empty() : tensor<3x17x19xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<3x17x19xf32>) -> tensor<3x17x19xf32>
  %p = linalg.batch_matmul ins(%x, %w : tensor<3x17x24xf32>, tensor<3x24x19xf32>)
    outs(%z : tensor<3x17x19xf32>) -> tensor<3x17x19xf32>
  return %p : tensor<3x17x19xf32>
}
// ----- ATTENTION
func.func @main(%q: tensor<3x19x8xf32>, %k: tensor<3x8x37xf32>, %v: tensor<3x37x10xf32>) -> tensor<3x19x10xf32> {
  %zero = arith.constant 0.0 : f32
  %z_e = tensor.empty() : tensor<3x19x37xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<3x19x37xf32>) -> tensor<3x19x37xf32>
  %s_e = tensor.empty() : tensor<3x19xf32>
  %s = linalg.fill ins(%zero : f32) outs(%s_e : tensor<3x19xf32>) -> tensor<3x19xf32>
  %t_e = tensor.empty() : tensor<3x19x10xf32>
  %t = linalg.fill ins(%zero : f32) outs(%t_e : tensor<3x19x10xf32>) -> tensor<3x19x10xf32>
  %p = linalg.batch_matmul ins(%q, %k : tensor<3x19x8xf32>, tensor<3x8x37xf32>)
    outs(%z : tensor<3x19x37xf32>) -> tensor<3x19x37xf32>
  %e = linalg.generic {indexing_maps = [#cube, #cube], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%p : tensor<3x19x37xf32>) outs(%z_e : tensor<3x19x37xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = math.exp %x : f32
    linalg.yield %r : f32
  } -> tensor<3x19x37xf32>
  %sum = linalg.generic {indexing_maps = [#cube, #pair],
    iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%e : tensor<3x19x37xf32>) outs(%s : tensor<3x19xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.addf %x, %o : f32
    linalg.yield %r : f32
  } -> tensor<3x19xf32>
  %w = linalg.generic {indexing_maps = [#cube, #pair, #cube],
    iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%e, %sum : tensor<3x19x37xf32>, tensor<3x19xf32>) outs(%z_e : tensor<3x19x37xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %r = arith.divf %x, %y : f32
    linalg.yield %r : f32
  } -> tensor<3x19x37xf32>
  %y = linalg.batch_matmul ins(%w, %v : tensor<3x19x37xf32>, tensor<3x37x10xf32>)
    outs(%t : tensor<3x19x10xf32>) -> tensor<3x19x10xf32>
  return %y : tensor<3x19x10xf32>
}
// ----- ROWS
func.func @main(%x: tensor<21x37xf32>) -> tensor<21x37xf32> {
  %zero = arith.constant 0.0 : f32
  %z_e = tensor.empty() : tensor<21xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<21xf32>) -> tensor<21xf32>
  %t = tensor.empty() : tensor<21x37xf32>
  %e = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<21x37xf32>) outs(%t : tensor<21x37xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.exp %v : f32
    linalg.yield %r : f32
  } -> tensor<21x37xf32>
  %sum = linalg.generic {indexing_maps = [#whole, #row], iterator_types = ["parallel", "reduction"]}
    ins(%e : tensor<21x37xf32>) outs(%z : tensor<21xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<21xf32>
  %y = linalg.generic {indexing_maps = [#whole, #row, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%e, %sum : tensor<21x37xf32>, tensor<21xf32>) outs(%t : tensor<21x37xf32>) {
  ^bb0(%v: f32, %s: f32, %o: f32):
    %r = arith.divf %v, %s : f32
    linalg.yield %r : f32
  } -> tensor<21x37xf32>
  return %y : tensor<21x37xf32>
}
// ----- ELEMENTWISE
func.func @main(%x: tensor<35x18xf32>) -> (tensor<18x35xf32>, tensor<35x18xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = tensor.empty() : tensor<18x35xf32>
  %y = linalg.transpose ins(%x : tensor<35x18xf32>) outs(%t : tensor<18x35xf32>) permutation = [1, 0]
  %u = tensor.empty() : tensor<35x18xf32>
  %z = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<35x18xf32>) outs(%u : tensor<35x18xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = math.tanh %v : f32
    linalg.yield %r : f32
  } -> tensor<35x18xf32>
  return %y, %z : tensor<18x35xf32>, tensor<35x18xf32>
}
// ----- CONVOLUTION
func.func @main(%x: tensor<1x4x9x9xf32>) -> tensor<1x6x9x9xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<NUMBERS> : tensor<6x4x3x3xf32>
  %z_e = tensor.empty() : tensor<1x6x9x9xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<1x6x9x9xf32>) -> tensor<1x6x9x9xf32>
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x4x9x9xf32> to tensor<1x4x11x11xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x4x11x11xf32>, tensor<6x4x3x3xf32>) outs(%z : tensor<1x6x9x9xf32>)
    -> tensor<1x6x9x9xf32>
  return %y : tensor<1x6x9x9xf32>
}
// ----- LOOPS
func.func @main(%x: tensor<23x11xf32>) -> tensor<11xf32> {
  %zero = arith.constant 0.0 : f32
  %z_e = tensor.empty() : tensor<11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%z_e : tensor<11xf32>) -> tensor<11xf32>
  %y = linalg.generic {indexing_maps = [#turned, #row], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<23x11xf32>) outs(%z : tensor<11xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.addf %v, %o : f32
    linalg.yield %r : f32
  } -> tensor<11xf32>
  return %y : tensor<11xf32>
}
