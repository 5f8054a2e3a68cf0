// ----- GLOBAL
memref.global "private" constant @w : memref<4xf32> = dense_resource<w>
func.func @main(%a: memref<4xf32>) {
  %w = memref.get_global @w : memref<4xf32>
  memref.copy %w, %a : memref<4xf32> to memref<4xf32>
  return
}
