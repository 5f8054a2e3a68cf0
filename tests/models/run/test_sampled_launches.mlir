// ----- CHAIN
func.func @main(%a: memref<256x48xf32>, %b: memref<48x256xf32>,
                              %d: memref<256x256xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<256x256xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<256x256xf32>)
  linalg.matmul ins(%a, %b : memref<256x48xf32>, memref<48x256xf32>)
    outs(%c : memref<256x256xf32>)
  linalg.add ins(%c, %c : memref<256x256xf32>, memref<256x256xf32>)
    outs(%d : memref<256x256xf32>)
  memref.dealloc %c : memref<256x256xf32>
  return
}
// ----- OWN_KERNEL
func.func @main(%a: memref<64x32xf32>, %n: index, %scale: f32) {
  %c0 = arith.constant 0 : index %c1 = arith.constant 1 : index %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index %c31 = arith.constant 31 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c64, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%s : memref<32xf32, #gpu.address_space<workgroup>>) {
    %x = memref.load %a[%bx, %tx] : memref<64x32xf32>
    memref.store %x, %s[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %q = arith.addi %tx, %n : index
    %p = arith.remui %q, %c32 : index
    %y = memref.load %s[%p] : memref<32xf32, #gpu.address_space<workgroup>>
    %z = arith.mulf %y, %scale : f32
    memref.store %z, %a[%bx, %tx] : memref<64x32xf32>
    gpu.terminator
  }
  return
}
