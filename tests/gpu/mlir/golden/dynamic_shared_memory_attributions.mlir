module attributes {gpu.container_module} {
  func.func @host(%arg0: memref<256xf32>) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %c1030_i32 = arith.constant 1030 : i32
    gpu.launch_func  @m::@k blocks in (%c1, %c1, %c1) threads in (%c256, %c1, %c1)  dynamic_shared_memory_size %c1030_i32 args(%arg0 : memref<256xf32>)
    return
  }
  gpu.module @m {
    gpu.func @k(%arg0: memref<256xf32>) private(%arg1 : memref<4xf32, #gpu.address_space<private>>) kernel {
      %0 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c1024 = arith.constant 1024 : index
      %view = memref.view %0[%c1024][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<3xf16, #gpu.address_space<workgroup>>
      %c0 = arith.constant 0 : index
      %view_0 = memref.view %0[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<256xf32, #gpu.address_space<workgroup>>
      %c0_1 = arith.constant 0 : index
      %view_2 = memref.view %0[%c0_1][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<256xf32, #gpu.address_space<workgroup>>
      %thread_id_x = gpu.thread_id x
      %1 = memref.load %arg0[%thread_id_x] : memref<256xf32>
      %c0_3 = arith.constant 0 : index
      %cst = arith.constant 1.000000e+00 : f32
      %cst_4 = arith.constant 1.000000e+00 : f16
      memref.store %cst_4, %view[%c0_3] : memref<3xf16, #gpu.address_space<workgroup>>
      memref.store %cst, %arg1[%c0_3] : memref<4xf32, #gpu.address_space<private>>
      memref.store %1, %view_0[%thread_id_x] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }
}
