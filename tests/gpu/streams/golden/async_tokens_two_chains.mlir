module attributes {gpu.container_module} {
  func.func @main(%arg0: memref<16xf32>, %arg1: memref<16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    %0 = gpu.wait async
    %memref, %asyncToken = gpu.alloc async [%0] () : memref<16xf32>
    %1 = gpu.wait async
    %memref_0, %asyncToken_1 = gpu.alloc async [%1] () : memref<16xf32>
    %memref_2, %asyncToken_3 = gpu.alloc async [%asyncToken_1] () : memref<16xf32>
    %2 = gpu.memcpy async [%asyncToken] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %3 = gpu.launch_func async [%2] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %4 = gpu.launch_func async [%3] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %5 = gpu.memcpy async [%asyncToken_3] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    %6 = gpu.launch_func async [%5] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
    %7 = gpu.launch_func async [%6] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
    %8 = gpu.wait async [%4, %7]
    %9 = gpu.launch_func async [%8] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>, %memref_2 : memref<16xf32>)
    %10 = gpu.memcpy async [%9] %arg0, %memref_2 : memref<16xf32>, memref<16xf32>
    %11 = gpu.dealloc async [%10] %memref : memref<16xf32>
    %12 = gpu.dealloc async [%11] %memref_0 : memref<16xf32>
    %13 = gpu.dealloc async [%12] %memref_2 : memref<16xf32>
    gpu.wait [%4, %7, %13]
    return
  }
