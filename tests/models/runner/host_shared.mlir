// Memory that host and device share, written by one and then by the other.
// CHECK: 3000
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %number = arith.constant 1500 : i32
  %shared = gpu.alloc host_shared () : memref<2xi32>
  memref.store %number, %shared[%c1] : memref<2xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %v = memref.load %shared[%c1] : memref<2xi32>
    %twice = arith.addi %v, %v : i32
    memref.store %twice, %shared[%c0] : memref<2xi32>
    gpu.terminator
  }
  %found = memref.load %shared[%c0] : memref<2xi32>
  vector.print %found : i32
  return
}
