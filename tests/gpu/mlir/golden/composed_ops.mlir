module {
  gpu.module @m {
    gpu.func @k(%arg0: memref<64xf32>, %arg1: f32) kernel {
      %block_id_x = gpu.block_id x
      %block_dim_x = gpu.block_dim x
      %0 = arith.muli %block_id_x, %block_dim_x : index
      %thread_id_x = gpu.thread_id x
      %1 = arith.addi %thread_id_x, %0 : index
      memref.store %arg1, %arg0[%1] : memref<64xf32>
      gpu.return
    }
  }
}
