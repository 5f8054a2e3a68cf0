// Two buffers that are in use one after the other: b[block, i] = a[block, 63 - (i + 1) mod 64].
func.func @turn_and_shift(%a: memref<3x64xf32>, %b: memref<3x64xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             workgroup(%first : memref<64xf32, #gpu.address_space<workgroup>>) {
    %second = memref.alloc() : memref<64xf32, #gpu.address_space<workgroup>>
    %value = memref.load %a[%bx, %tx] : memref<3x64xf32>
    memref.store %value, %first[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %from = arith.subi %c63, %tx : index
    %turned = memref.load %first[%from] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    memref.store %turned, %second[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %next = arith.addi %tx, %c1 : index
    %wrapped = arith.remui %next, %c64 : index
    %shifted = memref.load %second[%wrapped] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %shifted, %b[%bx, %tx] : memref<3x64xf32>
    gpu.terminator
  }
  return
}
