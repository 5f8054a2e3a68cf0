module {
  gpu.module @m {
    gpu.func @k(%arg0: memref<16x16xf32>, %arg1: index) kernel {
      %thread_id_x = gpu.thread_id x
      %alloc = memref.alloc() : memref<16x16xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c16 = arith.constant 16 : index
      %c16_0 = arith.constant 16 : index
      %c1 = arith.constant 1 : index
      %0 = arith.muli %c1, %c16 : index
      %1 = arith.muli %0, %c16_0 : index
      %thread_id_y = gpu.thread_id y
      %thread_id_z = gpu.thread_id z
      %block_dim_y = gpu.block_dim y
      %2 = arith.muli %thread_id_z, %block_dim_y : index
      %3 = arith.addi %thread_id_y, %2 : index
      %thread_id_x_1 = gpu.thread_id x
      %block_dim_x = gpu.block_dim x
      %4 = arith.muli %3, %block_dim_x : index
      %5 = arith.addi %thread_id_x_1, %4 : index
      %block_dim_x_2 = gpu.block_dim x
      %block_dim_y_3 = gpu.block_dim y
      %6 = arith.muli %block_dim_x_2, %block_dim_y_3 : index
      %block_dim_z = gpu.block_dim z
      %7 = arith.muli %6, %block_dim_z : index
      scf.for %arg2 = %5 to %1 step %7 {
        %8 = arith.remui %arg2, %c16_0 : index
        %9 = arith.divui %arg2, %c16_0 : index
        %10 = memref.load %arg0[%9, %8] : memref<16x16xf32>
        memref.store %10, %alloc[%9, %8] : memref<16x16xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      gpu.return
    }
  }
}
