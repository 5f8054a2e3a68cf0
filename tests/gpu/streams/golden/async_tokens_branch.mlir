module attributes {gpu.container_module} {
  func.func @main(%arg0: memref<16xf32>, %arg1: memref<16xf32>, %arg2: i1) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c3 = arith.constant 3 : index
    %0 = gpu.wait async
    %memref, %asyncToken = gpu.alloc async [%0] () : memref<16xf32>
    %1 = gpu.wait async
    %memref_0, %asyncToken_1 = gpu.alloc async [%1] () : memref<16xf32>
    %2 = gpu.wait async
    %memref_2, %asyncToken_3 = gpu.alloc async [%2] () : memref<16xf32>
    %3 = gpu.memcpy async [%asyncToken] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %4 = gpu.memcpy async [%asyncToken_1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    %5 = gpu.memcpy async [%asyncToken_3] %memref_2, %arg0 : memref<16xf32>, memref<16xf32>
    gpu.wait [%3, %4]
    scf.if %arg2 {
      %12 = gpu.wait async
      %13 = gpu.launch_func async [%12] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
      %14 = gpu.wait async
      %15 = gpu.launch_func async [%14] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
      gpu.wait [%13, %15]
    } else {
      %12 = gpu.wait async
      %13 = gpu.launch_func async [%12] @m::@twice blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>)
      gpu.wait [%13]
    }
    %6 = gpu.launch_func async [%5] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_2 : memref<16xf32>)
    %7 = gpu.launch_func async [%6] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_2 : memref<16xf32>, %memref_0 : memref<16xf32>)
    %8 = gpu.memcpy async [%7] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
    %9 = gpu.dealloc async [%8] %memref : memref<16xf32>
    %10 = gpu.dealloc async [%9] %memref_0 : memref<16xf32>
    %11 = gpu.dealloc async [%10] %memref_2 : memref<16xf32>
    gpu.wait [%11]
    return
  }
