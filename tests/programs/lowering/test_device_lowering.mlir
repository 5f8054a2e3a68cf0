// ----- BY_TOKENS
func.func @main(%a: memref<16xf32>, %b: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %t0 = gpu.wait async
  %d, %t1 = gpu.alloc async [%t0] () : memref<16xf32>
  %t2 = gpu.memcpy async [%t1] %d, %a : memref<16xf32>, memref<16xf32>
  %t3 = gpu.launch async [%t2] blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %d[%bx] : memref<16xf32>
    %new = arith.addf %old, %old : f32
    memref.store %new, %d[%bx] : memref<16xf32>
    gpu.terminator
  }
  %t4 = gpu.memcpy async [%t3] %b, %d : memref<16xf32>, memref<16xf32>
  %t5 = gpu.dealloc async [%t4] %d : memref<16xf32>
  gpu.wait [%t5]
  return
}
// ----- REGISTERED
func.func @main(%a: memref<16xf32>) {
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %any = memref.cast %a : memref<16xf32> to memref<*xf32>
  gpu.host_register %any : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c16, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %a[%bx] : memref<16xf32>
    %new = arith.addf %old, %old : f32
    memref.store %new, %a[%bx] : memref<16xf32>
    gpu.terminator
  }
  gpu.host_unregister %any : memref<*xf32>
  return
}
// ----- IN_ITERATIONS
func.func @main(%a: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %n step %c1 {
    %t = memref.alloc() : memref<16xf32>
    memref.copy %a, %t : memref<16xf32> to memref<16xf32>
    %old = memref.load %t[%c0] : memref<16xf32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %new = arith.addf %old, %old : f32
      memref.store %new, %a[%c0] : memref<16xf32>
      gpu.terminator
    }
    memref.dealloc %t : memref<16xf32>
  }
  return
}
// ----- DYNAMIC
func.func @main(%a: memref<?xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %a, %c0 : memref<?xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %old = memref.load %a[%bx] : memref<?xf32>
    %new = arith.mulf %old, %x : f32
    memref.store %new, %a[%bx] : memref<?xf32>
    gpu.terminator
  }
  return
}
