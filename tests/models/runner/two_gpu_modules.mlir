// Two gpu.module ops with a kernel of the same name each.
// CHECK: [5,  9]
module attributes {gpu.container_module} {
  gpu.module @left {
    gpu.func @set(%a: memref<2xi32>) kernel {
      %c0 = arith.constant 0 : index
      %five = arith.constant 5 : i32
      memref.store %five, %a[%c0] : memref<2xi32>
      gpu.return
    }
  }
  gpu.module @right {
    gpu.func @set(%a: memref<2xi32>) kernel {
      %c1 = arith.constant 1 : index
      %nine = arith.constant 9 : i32
      memref.store %nine, %a[%c1] : memref<2xi32>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<2xi32>
    %any = memref.cast %a : memref<2xi32> to memref<*xi32>
    gpu.host_register %any : memref<*xi32>
    gpu.launch_func @left::@set blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<2xi32>)
    gpu.launch_func @right::@set blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<2xi32>)
    call @printMemrefI32(%any) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}
