// Each block of 96 threads (three warps) sums its row: b[block] = sum of a[block, :].
func.func @sums(%a: memref<4x96xf32>, %b: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c96 = arith.constant 96 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c96, %sy = %c1, %sz = %c1) {
    %value = memref.load %a[%bx, %tx] : memref<4x96xf32>
    %sum = gpu.all_reduce add %value {} : (f32) -> f32
    %is_first = arith.cmpi eq, %tx, %c0 : index
    scf.if %is_first {
      memref.store %sum, %b[%bx] : memref<4xf32>
    }
    gpu.terminator
  }
  return
}
