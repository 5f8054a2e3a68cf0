  func.func @main(%arg0: memref<4x4xf32>, %arg1: memref<4x4xf32>) {
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %memref = gpu.alloc  () : memref<4x4xf32>
    %memref_0 = gpu.alloc  () : memref<4x4xf32>
    gpu.memcpy  %memref_0, %arg0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.memcpy  %memref, %arg1 : memref<4x4xf32>, memref<4x4xf32>
    %0:2 = scf.while (%arg2 = %c0, %arg3 = %memref_0) : (index, memref<4x4xf32>) -> (index, memref<4x4xf32>) {
      %1 = arith.cmpi slt, %arg2, %c4 : index
      scf.condition(%1) %arg2, %arg3 : index, memref<4x4xf32>
    } do {
    ^bb0(%arg2: index, %arg3: memref<4x4xf32>):
      gpu.launch_func  @main_kernel::@main_kernel blocks in (%c4, %c1, %c1) threads in (%c4, %c1, %c1)  args(%arg3 : memref<4x4xf32>, %memref : memref<4x4xf32>)
      %1 = arith.addi %arg2, %c1 : index
      scf.yield %1, %memref : index, memref<4x4xf32>
    }
    gpu.memcpy  %arg0, %memref_0 : memref<4x4xf32>, memref<4x4xf32>
    gpu.memcpy  %arg1, %memref : memref<4x4xf32>, memref<4x4xf32>
    gpu.dealloc  %memref_0 : memref<4x4xf32>
    gpu.dealloc  %memref : memref<4x4xf32>
    return
  }
