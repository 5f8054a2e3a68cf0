// ----- SWAP
func.func @swap(%a: memref<?xf32>, %x: f32, %n: index) -> (memref<?xf32>, f32, index) {
  %c0 = arith.constant 0 : index
  %size = memref.dim %a, %c0 : memref<?xf32>
  %new = memref.alloc(%size) : memref<?xf32>
  memref.copy %a, %new : memref<?xf32> to memref<?xf32>
  %old = memref.load %new[%n] : memref<?xf32>
  memref.store %x, %new[%n] : memref<?xf32>
  return %new, %old, %size : memref<?xf32>, f32, index
}
// ----- TWICE
func.func @f(%x: f32) -> (memref<3xf32>, memref<3xf32>) {
  %a = memref.alloc() : memref<3xf32>
  %b = memref.alloc() : memref<3xf32>
  linalg.fill ins(%x : f32) outs(%a : memref<3xf32>)
  linalg.fill ins(%x : f32) outs(%b : memref<3xf32>)
  memref.dealloc %b : memref<3xf32>
  return %a, %a : memref<3xf32>, memref<3xf32>
}
// ----- STORE
func.func @f(%a: memref<3xf32>, %b: memref<3xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  memref.store %x, %a[%c0] : memref<3xf32>
  return
}
