  func.func @main(%arg0: memref<4x4xf32>, %arg1: memref<4x4xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%arg0 : memref<4x4xf32>, %arg1 : memref<4x4xf32>)
    %memref = gpu.alloc  () : memref<4x4xf32>
    gpu.launch_func  @main_kernel_0::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%arg1 : memref<4x4xf32>, %memref : memref<4x4xf32>)
    gpu.dealloc  %memref : memref<4x4xf32>
    return
  }
