// Device memory by tokens: two chains, joined where a kernel reads both.
// CHECK: [11,  22,  33,  44]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<4xi32>, %b: memref<4xi32>, %c: memref<4xi32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %a[%i] : memref<4xi32>
      %y = memref.load %b[%i] : memref<4xi32>
      %z = arith.addi %x, %y : i32
      memref.store %z, %c[%i] : memref<4xi32>
      gpu.return
    }
  }
  memref.global "private" constant @ones : memref<4xi32> = dense<[1, 2, 3, 4]>
  memref.global "private" constant @tens : memref<4xi32> = dense<[10, 20, 30, 40]>
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %a = memref.get_global @ones : memref<4xi32>
    %b = memref.get_global @tens : memref<4xi32>
    %c = memref.alloc() : memref<4xi32>
    %begin = gpu.wait async
    %da, %t0 = gpu.alloc async [%begin] () : memref<4xi32>
    %t1 = gpu.memcpy async [%t0] %da, %a : memref<4xi32>, memref<4xi32>
    %begin2 = gpu.wait async
    %db, %t2 = gpu.alloc async [%begin2] () : memref<4xi32>
    %t3 = gpu.memcpy async [%t2] %db, %b : memref<4xi32>, memref<4xi32>
    %both = gpu.wait async [%t1, %t3]
    %t4 = gpu.launch_func async [%both] @kernels::@add blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
      args(%da : memref<4xi32>, %db : memref<4xi32>, %da : memref<4xi32>)
    %t5 = gpu.memcpy async [%t4] %c, %da : memref<4xi32>, memref<4xi32>
    %t6 = gpu.dealloc async [%t5] %da : memref<4xi32>
    %t7 = gpu.dealloc async [%t6] %db : memref<4xi32>
    gpu.wait [%t7]
    %any = memref.cast %c : memref<4xi32> to memref<*xi32>
    call @printMemrefI32(%any) : (memref<*xi32>) -> ()
    memref.dealloc %c : memref<4xi32>
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}
