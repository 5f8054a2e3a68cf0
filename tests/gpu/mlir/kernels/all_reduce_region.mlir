// Each block of 8 x 20 threads finds the largest of its values by a region: b[block] = max of a[block, :, :].
func.func @maxima(%a: memref<2x8x20xi32>, %b: memref<2xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c20 = arith.constant 20 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c20, %sy = %c8, %sz = %c1) {
    %value = memref.load %a[%bx, %ty, %tx] : memref<2x8x20xi32>
    %largest = gpu.all_reduce %value {
    ^bb0(%one: i32, %other: i32):
      %larger = arith.maxsi %one, %other : i32
      gpu.yield %larger : i32
    } : (i32) -> i32
    %row_is_first = arith.cmpi eq, %ty, %c0 : index
    %column_is_first = arith.cmpi eq, %tx, %c0 : index
    %is_first = arith.andi %row_is_first, %column_is_first : i1
    scf.if %is_first {
      memref.store %largest, %b[%bx] : memref<2xi32>
    }
    gpu.terminator
  }
  return
}
