// A warp adds its numbers without shared memory; then groups of four lanes find their largest.
// CHECK: data =
// CHECK-NEXT: [496,  496,  496
// CHECK: data =
// CHECK-NEXT: [3,  3,  3,  3,  7,  7,  7,  7,  11
func.func @main() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %sum = memref.alloc() : memref<32xi32>
  %most = memref.alloc() : memref<32xi32>
  %sum_any = memref.cast %sum : memref<32xi32> to memref<*xi32>
  %most_any = memref.cast %most : memref<32xi32> to memref<*xi32>
  gpu.host_register %sum_any : memref<*xi32>
  gpu.host_register %most_any : memref<*xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %mine = arith.index_cast %tx : index to i32
    %all = gpu.subgroup_reduce add %mine uniform : (i32) -> (i32)
    %largest = gpu.subgroup_reduce maxsi %mine cluster(size = 4) : (i32) -> (i32)
    memref.store %all, %sum[%tx] : memref<32xi32>
    memref.store %largest, %most[%tx] : memref<32xi32>
    gpu.terminator
  }
  call @printMemrefI32(%sum_any) : (memref<*xi32>) -> ()
  call @printMemrefI32(%most_any) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
