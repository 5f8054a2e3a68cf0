// ----- RUNTIME_CALLS
func.func private @mgpuSetDefaultDevice(i32)
func.func private @mgpuMemHostRegisterFloat(memref<*xf32>)
func.func @main(%a: memref<4xf32>) {
  %device = arith.constant DEVICE : i32
  call @mgpuSetDefaultDevice(%device) : (i32) -> ()
  %any = memref.cast %a : memref<4xf32> to memref<*xf32>
  call @mgpuMemHostRegisterFloat(%any) : (memref<*xf32>) -> ()
  return
}
