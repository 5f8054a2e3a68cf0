// The same bits as unsigned numbers: -1 is the largest.
// CHECK: rank = 1 offset = 0 sizes = [3] strides = [1] data =
// CHECK-NEXT: [-4,  -1,  11]
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %in = memref.alloc() : memref<3x4xi32>
  %out = memref.alloc() : memref<3xi32>
  %in_any = memref.cast %in : memref<3x4xi32> to memref<*xi32>
  %out_any = memref.cast %out : memref<3xi32> to memref<*xi32>
  gpu.host_register %in_any : memref<*xi32>
  gpu.host_register %out_any : memref<*xi32>
  %v00 = arith.constant -4 : i32
  memref.store %v00, %in[%c0, %c0] : memref<3x4xi32>
  %v01 = arith.constant 17 : i32
  memref.store %v01, %in[%c0, %c1] : memref<3x4xi32>
  %v02 = arith.constant 2 : i32
  memref.store %v02, %in[%c0, %c2] : memref<3x4xi32>
  %v03 = arith.constant -9 : i32
  memref.store %v03, %in[%c0, %c3] : memref<3x4xi32>
  %v10 = arith.constant -1 : i32
  memref.store %v10, %in[%c1, %c0] : memref<3x4xi32>
  %v11 = arith.constant -8 : i32
  memref.store %v11, %in[%c1, %c1] : memref<3x4xi32>
  %v12 = arith.constant -3 : i32
  memref.store %v12, %in[%c1, %c2] : memref<3x4xi32>
  %v13 = arith.constant -2 : i32
  memref.store %v13, %in[%c1, %c3] : memref<3x4xi32>
  %v20 = arith.constant 5 : i32
  memref.store %v20, %in[%c2, %c0] : memref<3x4xi32>
  %v21 = arith.constant 11 : i32
  memref.store %v21, %in[%c2, %c1] : memref<3x4xi32>
  %v22 = arith.constant 0 : i32
  memref.store %v22, %in[%c2, %c2] : memref<3x4xi32>
  %v23 = arith.constant 7 : i32
  memref.store %v23, %in[%c2, %c3] : memref<3x4xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c3, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %mine = memref.load %in[%bx, %tx] : memref<3x4xi32>
    %all = gpu.all_reduce maxui %mine uniform {} : (i32) -> (i32)
    memref.store %all, %out[%bx] : memref<3xi32>
    gpu.terminator
  }
  call @printMemrefI32(%out_any) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
