module attributes {gpu.container_module} {
  func.func @host(%arg0: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func  @first::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)  args(%arg0 : memref<4xf32>)
    gpu.launch_func  @first::@k_1 blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)  
    gpu.launch_func  @first::@other blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)  
    return
  }
  gpu.module @first {
    gpu.func @k(%arg0: memref<4xf32>) kernel {
      gpu.return
    }
    gpu.func @k_1() kernel {
      gpu.barrier
      gpu.return
    }
    gpu.func @other() kernel {
      gpu.return
    }
  }
}
