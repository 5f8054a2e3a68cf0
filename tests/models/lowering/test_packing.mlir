// ----- PADDED
func.func @main(%x: tensor<10x13xf32>, %into: tensor<10x13xf32>) -> (tensor<OUTERx8x4xf32>, tensor<10x13xf32>) {
  %z = arith.constant 1.5 : f32
  %e = tensor.empty() : tensor<OUTERx8x4xf32>
  %r = linalg.pack %x padding_value(%z : f32) ORDER inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %e
    : tensor<10x13xf32> -> tensor<OUTERx8x4xf32>
  %y = linalg.unpack %r ORDER inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %into
    : tensor<OUTERx8x4xf32> -> tensor<10x13xf32>
  return %r, %y : tensor<OUTERx8x4xf32>, tensor<10x13xf32>
}
// ----- DYNAMIC
func.func @main(%x: tensor<?x13xf32>, %into: tensor<?x13xf32>, %e: tensor<?x?x8x?xf32>, %t: index)
    -> (tensor<?x?x8x?xf32>, tensor<?x13xf32>) {
  %z = arith.constant 1.5 : f32
  %r = linalg.pack %x padding_value(%z : f32) ORDER inner_dims_pos = [1, 0] inner_tiles = [8, %t] into %e
    : tensor<?x13xf32> -> tensor<?x?x8x?xf32>
  %y = linalg.unpack %r ORDER inner_dims_pos = [1, 0] inner_tiles = [8, %t] into %into
    : tensor<?x?x8x?xf32> -> tensor<?x13xf32>
  return %r, %y : tensor<?x?x8x?xf32>, tensor<?x13xf32>
}
// ----- WHOLE
func.func @main(%x: tensor<8x6xi32>) -> tensor<4x6x2xi32> {
  %e = tensor.empty() : tensor<4x6x2xi32>
  %r = linalg.pack %x inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<8x6xi32> -> tensor<4x6x2xi32>
  return %r : tensor<4x6x2xi32>
}
// ----- OF_MATMUL
func.func @main(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %ea = tensor.empty() : tensor<2x3x8x8xf32>
  %pa = linalg.pack %a inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %ea : tensor<16x24xf32> -> tensor<2x3x8x8xf32>
  %eb = tensor.empty() : tensor<4x3x8x8xf32>
  %pb = linalg.pack %b outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 8] into %eb
    : tensor<24x32xf32> -> tensor<4x3x8x8xf32>
  %ec = tensor.empty() : tensor<2x4x8x8xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %pc = linalg.mmt4d ins(%pa, %pb : tensor<2x3x8x8xf32>, tensor<4x3x8x8xf32>) outs(%zc : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %e = tensor.empty() : tensor<16x32xf32>
  %c = linalg.unpack %pc inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %e : tensor<2x4x8x8xf32> -> tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}
// ----- PARTIAL
func.func @main(%x: tensor<7x6xi32>, %e: tensor<4x6x2xi32>) -> tensor<4x6x2xi32> {
  %r = linalg.pack %x inner_dims_pos = [0] inner_tiles = [2] into %e : tensor<7x6xi32> -> tensor<4x6x2xi32>
  return %r : tensor<4x6x2xi32>
}
// ----- BUFFERS
func.func @main(%x: memref<10x13xf32>, %packed: memref<OUTERx8x4xf32>, %back: memref<10x13xf32>) {
  %z = arith.constant 1.5 : f32
  linalg.pack %x padding_value(%z : f32) ORDER inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %packed
    : memref<10x13xf32> -> memref<OUTERx8x4xf32>
  linalg.unpack %packed ORDER inner_dims_pos = [1, 0] inner_tiles = [8, 4] into %back
    : memref<OUTERx8x4xf32> -> memref<10x13xf32>
  return
}
