  func.func @main(%arg0: memref<4x4xf32>, %arg1: memref<4x4xf32>) {
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %memref = gpu.alloc  () : memref<4x4xf32>
    %memref_0 = gpu.alloc  () : memref<4x4xf32>
    gpu.memcpy  %memref_0, %arg0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.memcpy  %memref, %arg1 : memref<4x4xf32>, memref<4x4xf32>
    %0 = scf.for %arg2 = %c0 to %c4 step %c1 iter_args(%arg3 = %memref_0) -> (memref<4x4xf32>) {
      gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%arg3 : memref<4x4xf32>, %memref : memref<4x4xf32>)
      scf.yield %memref : memref<4x4xf32>
    }
    gpu.memcpy  %arg0, %memref_0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.memcpy  %arg1, %memref : memref<4x4xf32>, memref<4x4xf32>
    gpu.dealloc  %memref_0 : memref<4x4xf32>
    gpu.dealloc  %memref : memref<4x4xf32>
    return
  }
