// ----- FILL
func.func @main(%a: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 1.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %a[%i] : memref<8xf32>
  }
  return
}
// ----- READ
func.func @main(%a: memref<?xf32>, %b: memref<?xf32>) {
  %c7 = arith.constant 7 : index
  %x = memref.load %b[%c7] : memref<?xf32>
  memref.store %x, %a[%c7] : memref<?xf32>
  return
}
// ----- ASSERT
func.func @main(%a: memref<8xf32>, %n: index) {
  %c8 = arith.constant 8 : index
  %fits = arith.cmpi sle, %n, %c8 : index
  cf.assert %fits, "n is too large"
  return
}
