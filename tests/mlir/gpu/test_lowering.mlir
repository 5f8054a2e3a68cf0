// ----- TWO_KERNELS
func.func @twice(%a: memref<64xf32>, %c: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %w = memref.alloc() {tuner.buffer = "workspace"} : memref<64xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %start = arith.muli %bx, %c32 : index
    %i = arith.addi %start, %tx : index
    %x = memref.load %a[%i] : memref<64xf32>
    memref.store %x, %w[%i] : memref<64xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c2, %sz = %c1) {
    %start = arith.muli %ty, %c32 : index
    %i = arith.addi %start, %tx : index
    %x = memref.load %w[%i] : memref<64xf32>
    %sum = memref.atomic_rmw addf %x, %c[%i] : (f32, memref<64xf32>) -> f32
    gpu.terminator
  }
  return
}
