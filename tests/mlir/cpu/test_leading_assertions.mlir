// ----- ROWS

func.func @gather(%table: memref<32x64xf32>, %indices: memref<8xindex>, %out: memref<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  scf.for %row = %c0 to %c8 step %c1 {
    scf.for %column = %c0 to %c64 step %c1 {
      %index = memref.load %indices[%row] : memref<8xindex>
      %is_inside = arith.cmpi ult, %index, %c32 : index
      cf.assert %is_inside, "an index is outside"
      %number = memref.load %table[%index, %column] : memref<32x64xf32>
      memref.store %number, %out[%row, %column] : memref<8x64xf32>
    }
  }
  return
}
// ----- LOOP

func.func @gather(%indices: memref<8xindex>, %out: memref<8xindex>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to END step %c1 {
BODY
  }
  return
}
