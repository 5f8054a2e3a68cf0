  func.func @main(%arg0: memref<4x4xf32>, %arg1: memref<4x4xf32>) -> (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) {
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %memref = gpu.alloc  () : memref<4x4xf32>
    %alloc = memref.alloc() : memref<4x4xf32>
    %memref_0 = gpu.alloc  () : memref<4x4xf32>
    gpu.memcpy  %memref, %arg0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%memref : memref<4x4xf32>, %memref_0 : memref<4x4xf32>)
    gpu.memcpy  %alloc, %memref_0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.dealloc  %memref : memref<4x4xf32>
    gpu.dealloc  %memref_0 : memref<4x4xf32>
    return %alloc, %alloc, %arg0 : memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>
  }
