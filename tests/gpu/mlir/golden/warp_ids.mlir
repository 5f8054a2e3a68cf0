module {
  func.func @k() -> (index, index) {
    %thread_id_y = gpu.thread_id y
    %thread_id_z = gpu.thread_id z
    %block_dim_y = gpu.block_dim y
    %0 = arith.muli %thread_id_z, %block_dim_y : index
    %1 = arith.addi %thread_id_y, %0 : index
    %thread_id_x = gpu.thread_id x
    %block_dim_x = gpu.block_dim x
    %2 = arith.muli %1, %block_dim_x : index
    %3 = arith.addi %thread_id_x, %2 : index
    %c32 = arith.constant 32 : index
    %4 = arith.divui %3, %c32 : index
    %block_dim_x_0 = gpu.block_dim x
    %block_dim_y_1 = gpu.block_dim y
    %5 = arith.muli %block_dim_x_0, %block_dim_y_1 : index
    %block_dim_z = gpu.block_dim z
    %6 = arith.muli %5, %block_dim_z : index
    %c32_2 = arith.constant 32 : index
    %7 = arith.ceildivui %6, %c32_2 : index
    return %4, %7 : index, index
  }
}
