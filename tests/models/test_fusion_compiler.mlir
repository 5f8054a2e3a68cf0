// ----- LOOP
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> tensor<4xf32> {
    %more = arith.addf %sum, %x : tensor<4xf32>
    scf.yield %more : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
// ----- LAYERS
#whole = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<29x43xi8>) -> tensor<29x150xf32> {
  %zero = arith.constant 0 : i32
  %w1 = arith.constant dense<W1> : tensor<43x230xi8>
  %w2 = arith.constant dense<W2> : tensor<230x150xi8>
  %s = arith.constant dense<S> : tensor<150xf32>
  %b = arith.constant dense<B> : tensor<150xf32>
  %p_e = tensor.empty() : tensor<29x230xi32>
  %p_z = linalg.fill ins(%zero : i32) outs(%p_e : tensor<29x230xi32>) -> tensor<29x230xi32>
  %p = linalg.matmul ins(%x, %w1 : tensor<29x43xi8>, tensor<43x230xi8>) outs(%p_z : tensor<29x230xi32>) -> tensor<29x230xi32>
  %h_e = tensor.empty() : tensor<29x230xi8>
  %h = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%p : tensor<29x230xi32>) outs(%h_e : tensor<29x230xi8>) {
  ^bb0(%v: i32, %o: i8):
    %scale = arith.constant 0.0078125 : f32
    %least = arith.constant -128.0 : f32
    %greatest = arith.constant 127.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %scale : f32
    %r = math.roundeven %g : f32
    %u = arith.maximumf %r, %least : f32
    %t = arith.minimumf %u, %greatest : f32
    %q = arith.fptosi %t : f32 to i8
    linalg.yield %q : i8
  } -> tensor<29x230xi8>
  %q_e = tensor.empty() : tensor<29x150xi32>
  %q_z = linalg.fill ins(%zero : i32) outs(%q_e : tensor<29x150xi32>) -> tensor<29x150xi32>
  %q = linalg.matmul ins(%h, %w2 : tensor<29x230xi8>, tensor<230x150xi8>) outs(%q_z : tensor<29x150xi32>) -> tensor<29x150xi32>
  %y_e = tensor.empty() : tensor<29x150xf32>
  %y = linalg.generic {indexing_maps = [#whole, #column, #column, #whole],
    iterator_types = ["parallel", "parallel"]}
    ins(%q, %s, %b : tensor<29x150xi32>, tensor<150xf32>, tensor<150xf32>)
    outs(%y_e : tensor<29x150xf32>) {
  ^bb0(%v: i32, %by: f32, %more: f32, %o: f32):
    %c0 = arith.constant 0.0 : f32
    %f = arith.sitofp %v : i32 to f32
    %g = arith.mulf %f, %by : f32
    %t = arith.addf %g, %more : f32
    %r = arith.maximumf %t, %c0 : f32
    linalg.yield %r : f32
  } -> tensor<29x150xf32>
  return %y : tensor<29x150xf32>
}
// ----- LINEAR
#whole = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<5x4xf32>) -> tensor<5x6xf32> {
  %w = arith.constant dense_resource<w> : tensor<6x4xf32>
  %zero = arith.constant 0.0 : f32
  %turned = tensor.empty() : tensor<4x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x4xf32>) outs(%turned : tensor<4x6xf32>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<5x6xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = linalg.matmul ins(%x, %t : tensor<5x4xf32>, tensor<4x6xf32>) outs(%zeros : tensor<5x6xf32>)
    -> tensor<5x6xf32>
  %z = linalg.generic {indexing_maps = [#whole, #whole], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<5x6xf32>) outs(%empty : tensor<5x6xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<5x6xf32>
  return %z : tensor<5x6xf32>
}
{-#
  dialect_resources: {
    builtin: {
      w: "0x04000000DATA"
    }
  }
#-}
// ----- PRODUCTS_OF_ONE_A

#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @main(%x: tensor<8x16xf32>, %a: tensor<16x32xf32>, %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x32xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x32xf32>) -> tensor<8x32xf32>
    %gate = linalg.matmul ins(%x, %a : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %up = linalg.matmul ins(%x, %b : tensor<8x16xf32>, tensor<16x32xf32>)
      outs(%fill : tensor<8x32xf32>) -> tensor<8x32xf32>
    %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up : tensor<8x32xf32>, tensor<8x32xf32>) outs(%empty : tensor<8x32xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
    } -> tensor<8x32xf32>
    return %r : tensor<8x32xf32>
  }
}
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
  %y = linalg.conv_2d_nchw_fchw
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
