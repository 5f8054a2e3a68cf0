// ----- MODEL

#a = affine_map<(i, j, k, l) -> (i, j, l)>
#b = affine_map<(i, j, k, l) -> (k, l)>
#c = affine_map<(i, j, k, l) -> (i, j, k)>
func.func @attention(%x: tensor<128x768xf32>, %w: tensor<768x768xf32>, %c: tensor<128x768xf32>)
    -> tensor<128x768xf32> {
  %q = linalg.matmul ins(%x, %w : tensor<128x768xf32>, tensor<768x768xf32>)
    outs(%c : tensor<128x768xf32>) -> tensor<128x768xf32>
  %k = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
      affine_map<(m, n, k) -> (m, n)>] ins(%q, %w : tensor<128x768xf32>, tensor<768x768xf32>)
    outs(%c : tensor<128x768xf32>) -> tensor<128x768xf32>
  %v = linalg.matmul ins(%k, %w : tensor<128x768xf32>, tensor<768x768xf32>)
    outs(%c : tensor<128x768xf32>) -> tensor<128x768xf32>
  return %v : tensor<128x768xf32>
}
func.func private @heads(%a: memref<8x64x32xbf16>, %b: memref<8x32x64xbf16>, %c: memref<8x64x64xf32>,
    %s: memref<32x64xbf16>) {
  linalg.batch_matmul ins(%a, %b : memref<8x64x32xbf16>, memref<8x32x64xbf16>) outs(%c : memref<8x64x64xf32>)
  linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>,
      affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%a, %s : memref<8x64x32xbf16>, memref<32x64xbf16>) outs(%c : memref<8x64x64xf32>)
  return
}
func.func @vectors(%m: tensor<64x32xf64>, %x: tensor<32xf64>, %y: tensor<64xf64>)
    -> (tensor<64xf64>, tensor<32xf64>) {
  %0 = linalg.matvec ins(%m, %x : tensor<64x32xf64>, tensor<32xf64>)
    outs(%y : tensor<64xf64>) -> tensor<64xf64>
  %1 = linalg.vecmat ins(%0, %m : tensor<64xf64>, tensor<64x32xf64>)
    outs(%x : tensor<32xf64>) -> tensor<32xf64>
  return %0, %1 : tensor<64xf64>, tensor<32xf64>
}
func.func @convolution(%x: tensor<1x14x14x64xf32>, %w: tensor<1x1x64x256xf32>, %c: tensor<1x14x14x256xf32>)
    -> tensor<1x14x14x256xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x14x14x64xf32>, tensor<1x1x64x256xf32>)
    outs(%c : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  return %0 : tensor<1x14x14x256xf32>
}
func.func @projection(%x: tensor<4x32x64xf32>, %w: tensor<128x64xf32>, %c: tensor<4x32x128xf32>)
    -> tensor<4x32x128xf32> {
  %0 = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<4x32x64xf32>, tensor<128x64xf32>) outs(%c : tensor<4x32x128xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %p = arith.mulf %l, %r : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x32x128xf32>
  return %0 : tensor<4x32x128xf32>
}
// ----- GENERICS
// matmuls: 1
%p = arith.mulf %y, %x : f32
%s = arith.addf %p, %sum : f32
linalg.yield %s : f32

// matmuls: 0
%p = arith.mulf %x, %x : f32
%s = arith.addf %sum, %p : f32
linalg.yield %s : f32

// matmuls: 0
%p = arith.addf %x, %y : f32
%s = arith.addf %sum, %p : f32
linalg.yield %s : f32

// matmuls: 0
%p = arith.mulf %x, %y : f32
%s = arith.subf %sum, %p : f32
linalg.yield %s : f32

// matmuls: 0
%p = arith.mulf %x, %y : f32
linalg.yield %p : f32

// matmuls: 0
%s = arith.addf %sum, %sum : f32
linalg.yield %s : f32

// matmuls: 0
linalg.yield %x : f32
// ----- OTHER_FILLS
// what: nothing

// what: ones
%one = arith.constant 1.0 : f32
linalg.fill ins(%one : f32) outs(%c : memref<8x4xf32>)

// what: a store behind it
linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)
memref.store %x, %c[%i, %i] : memref<8x4xf32>

// what: a read behind it
linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)
%old = memref.load %c[%i, %i] : memref<8x4xf32>
memref.store %old, %d[%i, %i] : memref<8x4xf32>

// what: a write of a view
linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)
%v = memref.subview %c[0, 0] [2, 2] [1, 1] : memref<8x4xf32> to memref<2x2xf32, strided<[4, 1]>>
linalg.fill ins(%x : f32) outs(%v : memref<2x2xf32, strided<[4, 1]>>)

// what: a write of what may be C
%s = arith.select %flag, %c, %d : memref<8x4xf32>
linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)
memref.store %x, %s[%i, %i] : memref<8x4xf32>

// what: a branch
scf.if %flag {
  linalg.fill ins(%zero : f32) outs(%c : memref<8x4xf32>)
}

// what: another buffer
linalg.fill ins(%zero : f32) outs(%d : memref<8x4xf32>)
