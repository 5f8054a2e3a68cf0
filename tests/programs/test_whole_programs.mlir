// ----- TWO_MATMULS
func.func @main(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>,
                        %d: memref<16x16xf32>, %e: memref<16x16xf32>) {
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%c : memref<16x16xf32>)
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%d : memref<16x16xf32>)
  linalg.add ins(%c, %d : memref<16x16xf32>, memref<16x16xf32>) outs(%e : memref<16x16xf32>)
  return
}
// ----- TWO_PRODUCTS
func.func @main(%a: memref<8x4xf32>, %b: memref<4x16xf32>,
                %d: memref<8x4xf32>, %e: memref<4x16xf32>, %c: memref<16x16xf32>) {
  %lo = memref.subview %c[0, 0] [8, 16] [1, 1] : memref<16x16xf32> to memref<8x16xf32, strided<[16, 1]>>
  %hi = memref.subview %c[SECOND, 0] [8, 16] [1, 1]
    : memref<16x16xf32> to memref<8x16xf32, strided<[16, 1], offset: OFFSET>>
  linalg.matmul ins(%a, %b : memref<8x4xf32>, memref<4x16xf32>) outs(%lo : memref<8x16xf32, strided<[16, 1]>>)
  linalg.matmul ins(%d, %e : memref<8x4xf32>, memref<4x16xf32>)
    outs(%hi : memref<8x16xf32, strided<[16, 1], offset: OFFSET>>)
  return
}
