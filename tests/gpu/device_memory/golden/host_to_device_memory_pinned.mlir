  func.func @main(%arg0: memref<4x4xf32>, %arg1: memref<4x4xf32>) -> memref<4x4xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %cst = arith.constant 1.000000e+00 : f32
    %memref = gpu.alloc  host_shared () : memref<4x4xf32>
    %memref_0 = gpu.alloc  () : memref<4x4xf32>
    %alloc = memref.alloc() : memref<4x4xf32>
    %memref_1 = gpu.alloc  () : memref<4x4xf32>
    memref.store %cst, %memref[%c0, %c0] : memref<4x4xf32>
    gpu.memcpy  %memref_0, %memref : memref<4x4xf32>, memref<4x4xf32>
    gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%memref_0 : memref<4x4xf32>, %memref_1 : memref<4x4xf32>)
    gpu.dealloc  %memref_0 : memref<4x4xf32>
    gpu.dealloc  %memref : memref<4x4xf32>
    gpu.memcpy  %alloc, %memref_1 : memref<4x4xf32>, memref<4x4xf32>
    gpu.dealloc  %memref_1 : memref<4x4xf32>
    return %alloc : memref<4x4xf32>
  }
