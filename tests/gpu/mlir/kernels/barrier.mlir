// Each block turns its 64 elements round through shared memory: b[block, i] = a[block, 63 - i].
func.func @reverse(%a: memref<3x64xf32>, %b: memref<3x64xf32>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1)
             workgroup(%tile : memref<64xf32, #gpu.address_space<workgroup>>) {
    %value = memref.load %a[%bx, %tx] : memref<3x64xf32>
    memref.store %value, %tile[%tx] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %from = arith.subi %c63, %tx : index
    %turned = memref.load %tile[%from] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %turned, %b[%bx, %tx] : memref<3x64xf32>
    gpu.terminator
  }
  return
}
