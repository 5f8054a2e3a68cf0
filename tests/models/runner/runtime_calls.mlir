// The program chooses its device and registers memory by the runtime's own functions.
// CHECK: [1,  2,  4,  8]
func.func private @mgpuSetDefaultDevice(i32)
func.func private @mgpuMemHostRegisterInt32(memref<*xi32>)
func.func private @printMemrefI32(memref<*xi32>) attributes {llvm.emit_c_interface}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %device = arith.constant 0 : i32
  call @mgpuSetDefaultDevice(%device) : (i32) -> ()
  %a = memref.alloc() : memref<4xi32>
  %any = memref.cast %a : memref<4xi32> to memref<*xi32>
  call @mgpuMemHostRegisterInt32(%any) : (memref<*xi32>) -> ()
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %one = arith.constant 1 : i32
    %shift = arith.index_cast %tx : index to i32
    %power = arith.shli %one, %shift : i32
    memref.store %power, %a[%tx] : memref<4xi32>
    gpu.terminator
  }
  call @printMemrefI32(%any) : (memref<*xi32>) -> ()
  return
}
