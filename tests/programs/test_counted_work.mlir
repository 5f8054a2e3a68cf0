// ----- LOOP
func.func @main(%x: memref<64xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %step = %c0 to %n step %c1 {
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      %old = memref.load %x[%i] : memref<64xf32>
      %new = arith.addf %old, %old : f32
      memref.store %new, %x[%i] : memref<64xf32>
      scf.reduce
    }
  }
  return
}
