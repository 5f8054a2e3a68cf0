// Each thread keeps four values of its own and adds them up from an index that only it knows:
// b[i] = sum over j of (j + 1) * a[i, (i + j) mod 4].
func.func @rotate(%a: memref<64x4xf32>, %b: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             private(%own : memref<4xf32, #gpu.address_space<private>>) {
    scf.for %j = %c0 to %c4 step %c1 {
      %value = memref.load %a[%tx, %j] : memref<64x4xf32>
      memref.store %value, %own[%j] : memref<4xf32, #gpu.address_space<private>>
    }
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%part = %zero) -> f32 {
      %shifted = arith.addi %tx, %j : index
      %from = arith.remui %shifted, %c4 : index
      %value = memref.load %own[%from] : memref<4xf32, #gpu.address_space<private>>
      %next = arith.addi %j, %c1 : index
      %whole = arith.index_cast %next : index to i32
      %weight = arith.sitofp %whole : i32 to f32
      %weighted = arith.mulf %weight, %value : f32
      %more = arith.addf %part, %weighted : f32
      scf.yield %more : f32
    }
    memref.store %sum, %b[%tx] : memref<64xf32>
    gpu.terminator
  }
  return
}
