// ----- PROGRAM
func.func @main(%x: memref<2x64xELEMENT>, %y: memref<2x64xELEMENT>MORE) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  BEFORE
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
      threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) ATTRIBUTIONS {
    %v = memref.load %x[%bx, %tx] : memref<2x64xELEMENT>
    BODY
    gpu.terminator
  }
  return
}
