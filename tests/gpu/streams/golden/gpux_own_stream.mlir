module attributes {gpu.container_module} {
  func.func private @mgpuStreamSynchronize(!llvm.ptr)
  func.func private @mgpuEventDestroy(!llvm.ptr)
  func.func private @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventRecord(!llvm.ptr, !llvm.ptr)
  func.func private @mgpuEventCreate() -> !llvm.ptr
  func.func @main(%arg0: memref<16xf32>, %arg1: !llvm.ptr, %arg2: !llvm.ptr) {
    %0 = builtin.unrealized_conversion_cast %arg1 : !llvm.ptr to !gpu.async.token
    %1 = builtin.unrealized_conversion_cast %arg2 : !llvm.ptr to !gpu.async.token
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %2 = call @mgpuEventCreate() : () -> !llvm.ptr
    call @mgpuEventRecord(%2, %arg1) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuStreamWaitEvent(%arg2, %2) : (!llvm.ptr, !llvm.ptr) -> ()
    call @mgpuEventDestroy(%2) : (!llvm.ptr) -> ()
    %memref, %asyncToken = gpu.alloc async [%1] () : memref<16xf32>
    %3 = gpu.memcpy async [%1] %memref, %arg0 : memref<16xf32>, memref<16xf32>
    %4 = gpu.launch_func async [%1] @m::@inc blocks in (%c1, %c1, %c1) threads in (%c16, %c1, %c1)  args(%memref : memref<16xf32>)
    %5 = gpu.memcpy async [%1] %arg0, %memref : memref<16xf32>, memref<16xf32>
    %6 = gpu.dealloc async [%1] %memref : memref<16xf32>
    call @mgpuStreamSynchronize(%arg2) : (!llvm.ptr) -> ()
    return
  }
