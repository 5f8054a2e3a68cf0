// GPUX on two streams, ordered by tokens alone: a loop hands one on, a view with gaps is copied at the end.
// CHECK: [106,  108]
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @add(%a: memref<8xi32>, %b: memref<8xi32>) kernel {
      %i = gpu.thread_id x
      %x = memref.load %a[%i] : memref<8xi32>
      %y = memref.load %b[%i] : memref<8xi32>
      %z = arith.addi %x, %y : i32
      memref.store %z, %a[%i] : memref<8xi32>
      gpu.return
    }
  }
  memref.global "private" constant @numbers : memref<8xi32> = dense<[1, 2, 3, 4, 5, 6, 7, 8]>
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c10 = arith.constant 10 : index
    %zero = arith.constant 0 : i32
    %ten = arith.constant 10 : i32
    %a = memref.get_global @numbers : memref<8xi32>
    %result = memref.alloc() : memref<2xi32>
    %s = gpux.create_stream : !gpux.StreamType
    %r = gpux.create_stream : !gpux.StreamType
    %begin = gpu.wait async
    %x, %t0 = gpux.alloc async [%begin] (%s) : memref<8xi32>
    %y, %t1 = gpux.alloc async (%r) : memref<8xi32>
    %z, %t2 = gpux.alloc async (%r) : memref<8xi32>
    %t3 = gpux.memcpy async [%t0] %s, %x, %a : memref<8xi32>, memref<8xi32>
    %t4 = gpux.memset async [%t1] %r, %y, %zero : memref<8xi32>, i32
    %t5 = gpux.memset async [%t2] %r, %z, %ten : memref<8xi32>, i32
    %both = gpux.wait async [%t4, %t5] %r
    %t6 = scf.for %i = %c0 to %c10 step %c1 iter_args(%t = %both) -> (!gpu.async.token) {
      %u = gpux.launch_func async [%t] %r @kernels::@add blocks in (%c1, %c1, %c1)
        threads in (%c8, %c1, %c1) args(%y : memref<8xi32>, %z : memref<8xi32>)
      scf.yield %u : !gpu.async.token
    }
    %t7 = gpu.launch_func async [%t3, %t6] <%s : !gpux.StreamType> @kernels::@add blocks in (%c1, %c1, %c1)
      threads in (%c8, %c1, %c1) args(%x : memref<8xi32>, %y : memref<8xi32>)
    %view = memref.subview %x[5] [2] [2] : memref<8xi32> to memref<2xi32, strided<[2], offset: 5>>
    %t8 = gpux.memcpy async [%t7] %r, %result, %view : memref<2xi32>, memref<2xi32, strided<[2], offset: 5>>
    %t9 = gpux.dealloc async [%t8] %s, %x : memref<8xi32>
    %t10 = gpux.dealloc async [%t7] %r, %y : memref<8xi32>
    %t11 = gpux.dealloc async %r, %z : memref<8xi32>
    gpu.wait [%t9, %t10, %t11]
    %any = memref.cast %result : memref<2xi32> to memref<*xi32>
    call @printMemrefI32(%any) : (memref<*xi32>) -> ()
    memref.dealloc %result : memref<2xi32>
    gpux.destroy_stream %s
    gpux.destroy_stream %r
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
}
