// ----- TWO_MATMULS
func.func @main(%a: memref<16x8xf32>, %b: memref<8x16xf32>, %c: memref<16x16xf32>,
                        %d: memref<16x16xf32>, %e: memref<16x16xf32>) {
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%c : memref<16x16xf32>)
  linalg.matmul ins(%a, %b : memref<16x8xf32>, memref<8x16xf32>) outs(%d : memref<16x16xf32>)
  linalg.add ins(%c, %d : memref<16x16xf32>, memref<16x16xf32>) outs(%e : memref<16x16xf32>)
  return
}
