module attributes {gpu.container_module} {
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  func.func @main(%arg0: memref<16xf32>, %arg1: !llvm.ptr) {
    %0 = builtin.unrealized_conversion_cast %arg1 : !llvm.ptr to !gpu.async.token
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %memref, %asyncToken = gpu.alloc async [%0] () : memref<16xf32>
    %1 = gpu.memcpy async [%0] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %2 = gpu.launch_func async [%0] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %3 = gpu.memcpy async [%0] %arg0, %memref : memref<16xf32>, memref<16xf32>
    %4 = gpu.dealloc async [%0] %memref : memref<16xf32>
    call @mgpuStreamSynchronize(%arg1) : (!llvm.ptr) -> ()
    return
  }
