// ----- ON_MEMREFS
func.func @on_memrefs(%a: memref<24x32xf32>, %b: memref<32x64xf32>, %c: memref<24x64xf32>) {
  linalg.matmul ins(%a, %b : memref<24x32xf32>, memref<32x64xf32>) outs(%c : memref<24x64xf32>)
  return
}
