// Two launches become kernels of the same name in two modules; the second overwrites half of the first.
// CHECK: [10,  11,  12,  0,  -1,  -2]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %a = memref.alloc() : memref<6xi32>
  %dyn = memref.cast %a : memref<6xi32> to memref<?xi32>
  %any = memref.cast %dyn : memref<?xi32> to memref<*xi32>
  gpu.host_register %any : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
    %ten = arith.constant 10 : i32
    %t = arith.index_cast %tx : index to i32
    %sum = arith.addi %t, %ten : i32
    memref.store %sum, %dyn[%tx] : memref<?xi32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
    %none = arith.constant 0 : i32
    %t = arith.index_cast %tx : index to i32
    %minus = arith.subi %none, %t : i32
    %at = arith.addi %tx, %c3 : index
    memref.store %minus, %dyn[%at] : memref<?xi32>
    gpu.terminator
  }
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
