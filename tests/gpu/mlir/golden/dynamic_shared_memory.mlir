module attributes {gpu.container_module} {
  func.func @host(%arg0: memref<256xf32>) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %c2048_i32 = arith.constant 2048 : i32
    gpu.launch_func  @m::@k blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  dynamic_shared_memory_size %c2048_i32 args(%arg0 : memref<256xf32>)
    return
  }
  gpu.module @m {
    gpu.func @k(%arg0: memref<256xf32>) kernel {
      %0 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c0 = arith.constant 0 : index
      %view = memref.view %0[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<256xf32, #gpu.address_space<workgroup>>
      %c1024 = arith.constant 1024 : index
      %view_0 = memref.view %0[%c1024][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<256xf32, #gpu.address_space<workgroup>>
      %thread_id_x = gpu.thread_id x
      %1 = memref.load %arg0[%thread_id_x] : memref<256xf32>
      memref.store %1, %view[%thread_id_x] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %1, %view_0[%thread_id_x] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %2 = memref.load %view[%thread_id_x] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %2, %arg0[%thread_id_x] : memref<256xf32>
      %3 = memref.load %view_0[%thread_id_x] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %3, %arg0[%thread_id_x] : memref<256xf32>
      gpu.return
    }
  }
}
