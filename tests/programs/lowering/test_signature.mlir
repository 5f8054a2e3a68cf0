// ----- KINDS
func.func @f(%a: memref<2x?xbf16>, %n: index, %x: f64) -> (memref<?x4xi8>, i1) {
  %c = memref.alloc(%n) : memref<?x4xi8>
  %yes = arith.constant true
  return %c, %yes : memref<?x4xi8>, i1
}
// ----- WRITTEN
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %i: index) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  %view = memref.subview %c[%i] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1], offset: ?>>
  %x = memref.load %a[%i] : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%view : memref<1xf32, strided<[1], offset: ?>>)
  return
}
