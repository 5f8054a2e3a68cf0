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
    %2 = gpu.memcpy async [%asyncToken] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %3 = gpu.memcpy async [%asyncToken_1] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
    gpu.wait [%2, %3]
    scf.for %arg2 = %c0 to %c3 step %c1 {
      %12 = gpu.wait async
      %13 = gpu.launch_func async [%12] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
      %14 = gpu.wait async
      %15 = gpu.launch_func async [%14] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref_0 : memref<16xf32>)
      %16 = gpu.memcpy async [%15] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
      gpu.wait [%16]
      %17 = memref.load %arg1[%c0] : memref<16xf32>
      %18 = arith.addf %17, %17 : f32
      memref.store %18, %arg1[%c1] : memref<16xf32>
      %19 = gpu.wait async
      %20 = gpu.memcpy async [%19] %memref_0, %arg1 : memref<16xf32>, memref<16xf32>
      gpu.wait [%13, %20]
    }
    %4 = gpu.wait async
    %5 = gpu.launch_func async [%4] @m::@add blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>, %memref_0 : memref<16xf32>, %memref_0 : memref<16xf32>)
    %6 = gpu.wait async
    %7 = gpu.memcpy async [%6] %arg0, %memref : memref<16xf32>, memref<16xf32>
    %8 = gpu.memcpy async [%5] %arg1, %memref_0 : memref<16xf32>, memref<16xf32>
    %9 = gpu.dealloc async [%8] %memref_0 : memref<16xf32>
    %10 = gpu.wait async [%5, %7]
    %11 = gpu.dealloc async [%10] %memref : memref<16xf32>
    gpu.wait [%9, %7, %11]
    return
  }
