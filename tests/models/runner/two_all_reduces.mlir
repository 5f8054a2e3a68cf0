// One kernel reduces two values, by different kinds, one after the other.
// CHECK: data =
// CHECK-NEXT: [10,  26,  42]
// CHECK: data =
// CHECK-NEXT: [4,  8,  12]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %in = memref.alloc() : memref<3x4xf32>
  %sum = memref.alloc() : memref<3xf32>
  %largest = memref.alloc() : memref<3xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %row = arith.muli %i, %c4 : index
      %at = arith.addi %row, %j : index
      %next = arith.addi %at, %c1 : index
      %bits = arith.index_cast %next : index to i32
      %number = arith.sitofp %bits : i32 to f32
      memref.store %number, %in[%i, %j] : memref<3x4xf32>
    }
  }
  %in_any = memref.cast %in : memref<3x4xf32> to memref<*xf32>
  %sum_any = memref.cast %sum : memref<3xf32> to memref<*xf32>
  %largest_any = memref.cast %largest : memref<3xf32> to memref<*xf32>
  gpu.host_register %in_any : memref<*xf32>
  gpu.host_register %sum_any : memref<*xf32>
  gpu.host_register %largest_any : memref<*xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %mine = memref.load %in[%bx, %tx] : memref<3x4xf32>
    %added = gpu.all_reduce add %mine uniform {} : (f32) -> (f32)
    %most = gpu.all_reduce maxnumf %mine uniform {} : (f32) -> (f32)
    memref.store %added, %sum[%bx] : memref<3xf32>
    memref.store %most, %largest[%bx] : memref<3xf32>
    gpu.terminator
  }
  call @printMemrefF32(%sum_any) : (memref<*xf32>) -> ()
  call @printMemrefF32(%largest_any) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
